"""What `make test` lists at its end."""

import slowest

XML = """<testsuites><testsuite name="pytest">
<testcase classname="tests.test_a" name="test_x[1]" time="2.5"/>
<testcase classname="tests.test_a" name="test_y" time="0.1"><failure/></testcase>
</testsuite></testsuites>"""
CARGO = """   Compiling fencepost-sim v0.1.0
     Running unittests src/lib.rs (target/debug/deps/fencepost_sim-92d49ecd84cd6468)

running 2 tests
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 66.92s

     Running tests/record/main.rs (target/debug/deps/record-0a)
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s
"""


def test_tests_of_both_languages_are_in_one_list(tmp_path):
    (tmp_path / "python.xml").write_text(XML)
    (tmp_path / "rust.txt").write_text(CARGO)
    assert slowest.slowest(tmp_path) == [
        (66.92, "all of fencepost_sim (Rust)"),
        (2.5, "tests.test_a::test_x[1]"),
        (0.5, "all of record (Rust)"),
        (0.1, "tests.test_a::test_y"),
    ]


def test_only_the_slowest_are_listed(tmp_path):
    cases = "".join(f'<testcase classname="t" name="n{i}" time="{i}"/>' for i in range(50))
    (tmp_path / "a.xml").write_text(f"<testsuite>{cases}</testsuite>")
    assert [seconds for seconds, _ in slowest.slowest(tmp_path)] == list(range(49, 39, -1))
