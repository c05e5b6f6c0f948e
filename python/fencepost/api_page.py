"""The reference of `import fencepost` and of the options of a replay, from the source itself:

python -m fencepost.api_page docs
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from fencepost import api, documents, evidence, option_page
from fencepost.sentences import one_a_line

INTRODUCTION = """\
# Fencepost from Python
"""

PRINTED = """\
```
      machine       scheme   speedup
0  pcs-table1         nopb  1.000000
1  pcs-table1           pb  1.306451
2  pcs-table1        pb_rf  1.307771
3  pcs-table1  pb_adaptive  1.300744
4  64 entries         nopb  1.000000
5  64 entries           pb  1.306451
6  64 entries        pb_rf  1.302786
7  64 entries  pb_adaptive  1.364346
```

`set` returns a changed copy, so machines can be kept side by side.
Wrong input raises `fp.InputError`, whose text is one clear message.
A fault of the simulator in one replay leaves the others whole, and is in that run's `error`.

[python.ipynb](python.ipynb) is a walk through with outputs, and [results.md](results.md) describes
what a result holds.
Everything is typed (`py.typed`).
`fp.evidence` has [a page of its own](python-evidence.md).
`.venv/bin/python -m fencepost.api_page docs` makes these pages.
"""

EVIDENCE = """\
# Rows of evidence from Python
"""

FURTHER = """\
## The commands `explain` and `whatif`

They give the documents of [explain.md](explain-reference.md#the-document) and
[whatif.md](whatif.md#the-document).
"""

OPTIONS = """\
## `Options`

The options of a replay are keywords of `compare`, `explain` and `whatif`.
[replay-options.md](replay-options.md) says what they mean and which function refuses which.
"""

WIDTH = 96  # of a signature on one line


def pages() -> dict[str, str]:
    """The pages by file name."""
    replays, rows = _replays(), _evidence()
    return {"python.md": replays, "python-evidence.md": rows, option_page.NAME: option_page.page()}


def _replays() -> str:
    parts = [INTRODUCTION, _text(api.__doc__ or ""), PRINTED]
    for name in ("record", "compare"):
        parts += _entry(_definition(api, name))
    parts += [OPTIONS, option_page.keywords()]
    for name in ("Machine", "Record", "Result"):
        parts += _entry(_definition(api, name))
    parts += ["## `InputError`, `InternalError`", inspect.cleandoc(_ERRORS), FURTHER]
    for name in ("explain", "Explanation", "whatif", "Sensitivity", "sweep", "Sweep"):
        parts += _entry(_definition(api, name))
    return _joined(parts)


def _evidence() -> str:
    parts = [EVIDENCE, _text(evidence.__doc__ or "")]
    for function in (evidence.rows, evidence.evaluate, evidence.evaluate_all):
        module = importlib.import_module(function.__module__)
        parts += _entry(_definition(module, function.__name__))
    parts += _entry(_definition(importlib.import_module(evidence.Row.__module__), "Row"))
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    return one_a_line("\n\n".join(part.strip("\n") for part in parts) + "\n")


_ERRORS = """
`InputError`: wrong input; its text is one clear message (what, where, what would be right).
`InternalError`: a fault of the simulator; its text names the run. `compare` keeps it in the run's
`error` instead of raising it.
"""


def _definition(module: ModuleType, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef]:
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return source, node
    raise KeyError(name)


def _entry(found: tuple[str, ast.ClassDef | ast.FunctionDef]) -> list[str]:
    source, node = found
    text = _text(ast.get_docstring(node) or "")
    if isinstance(node, ast.FunctionDef):
        return [f"## `{node.name}`", _signature(node), text]
    parts = [f"## `{node.name}`", text, *_fields(source, node)]
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            parts += [f"### `{node.name}.{one.name}`", _signature(one)]
            parts.append(_text(ast.get_docstring(one) or ""))
    return parts


def _fields(source: str, node: ast.ClassDef) -> list[str]:
    """A table of the attributes, with the remarks behind them."""
    lines = source.splitlines()
    rows = []
    for one in node.body:
        if isinstance(one, ast.AnnAssign):
            _, _, remark = lines[one.lineno - 1].partition("  # ")
            written = ast.unparse(one.annotation).replace("|", "\\|")
            rows.append(f"| `{ast.unparse(one.target)}` | `{written}` | {remark} |")
    return ["\n".join(["| attribute | type | |", "|---|---|---|", *rows])] if rows else []


def _signature(node: ast.FunctionDef) -> str:
    decorators = {ast.unparse(one) for one in node.decorator_list}
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if decorators & {"property", "cached_property"}:
        return f"```python\n{node.name}{returns.replace(' -> ', ': ')}\n```"
    arguments = [one for one in _arguments(node.args) if one not in ("self", "cls")]
    whole = f"{node.name}({', '.join(arguments)}){returns}"
    if len(whole) > WIDTH:
        inside = "".join(f"    {one},\n" for one in arguments)
        whole = f"{node.name}(\n{inside}){returns}"
    return f"```python\n{whole}\n```"


def _arguments(of: ast.arguments) -> Iterator[str]:
    missing = [None] * (len(of.args) - len(of.defaults))
    for one, default in zip(of.args, [*missing, *of.defaults], strict=True):
        yield _argument(one, default)
    if of.kwonlyargs:
        yield "*"
    for one, default in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        yield _argument(one, default)
    if of.kwarg:
        yield f"**{_argument(of.kwarg, None)}"


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    equals = " = " if kind else "="
    return f"{one.arg}{kind}" + (f"{equals}{ast.unparse(default)}" if default else "")


def _text(docstring: str) -> str:
    """With indented lines as code."""
    lines: list[str] = []
    for line in inspect.cleandoc(docstring).splitlines():
        is_code = line.startswith("    ")
        if is_code and not _is_open(lines):
            lines.append("```python")
        elif line and not is_code and _is_open(lines):
            while lines[-1] == "":
                lines.pop()
            lines += ["```", ""]
        lines.append(line[4:] if is_code else line)
    return "\n".join(lines + (["```"] if _is_open(lines) else []))


def _is_open(lines: list[str]) -> bool:
    return sum(line.startswith("```") for line in lines) % 2 == 1


if __name__ == "__main__":
    documents.write_pages(Path(sys.argv[1]), pages())
