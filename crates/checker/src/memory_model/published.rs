//! The published litmus tests: `experiments/published/litmus_persistency.csv`, whose README says where they come from.

use super::condition::Condition;
use super::cxl0::FabricTest;
use super::litmus_test::{Isa, LitmusTest};
use super::parse::parse;

/// The table.
const TABLE: &str = include_str!("../../../../experiments/published/litmus_persistency.csv");

/// The columns that the table has.
const COLUMNS: [&str; 7] = ["id", "isa", "threads", "query", "verdict", "nvm_states", "source"];

/// All tests of a processor's memory model, in the order of the table.
pub fn processor_tests() -> Vec<LitmusTest> {
    published().0
}

/// All tests of a fabric's memory model, in the order of the table.
pub fn fabric_tests() -> Vec<FabricTest> {
    published().1
}

fn published() -> (Vec<LitmusTest>, Vec<FabricTest>) {
    tests_of(TABLE).unwrap_or_else(|error| panic!("the published table: {error}"))
}

/// The tests of a table, those of processors and those of the fabric.
///
/// # Errors
/// What is wrong with the table, and in which test.
pub fn tests_of(table: &str) -> Result<(Vec<LitmusTest>, Vec<FabricTest>), String> {
    let mut lines = table.lines();
    if fields(lines.next().unwrap_or_default()) != COLUMNS {
        return Err(format!("its columns are not {}", COLUMNS.join(",")));
    }
    let (mut of_processors, mut of_fabric) = (Vec::new(), Vec::new());
    for row in lines.map(fields) {
        let [id, isa, text, query, verdict, ..] = &row[..] else {
            return Err(format!("`{}` has {} fields and not {}", row.join(","), row.len(), COLUMNS.len()));
        };
        if isa == "fabric" {
            of_fabric.push(FabricTest::parse(id, text, query, verdict)?);
        } else {
            of_processors.push(litmus_test(&row)?);
        }
    }
    Ok((of_processors, of_fabric))
}

/// The fields of a line; a quoted one may have commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => fields.last_mut().expect("there is always one").push(other),
        }
    }
    fields
}

fn litmus_test(row: &[String]) -> Result<LitmusTest, String> {
    let [id, isa, text, query, verdict, states, source] = row else {
        return Err(format!("`{}` has {} fields and not {}", row.join(","), row.len(), COLUMNS.len()));
    };
    let explain = |error: String| format!("{id}: {error}");
    let threads = parse(text).map_err(explain)?;
    let set = match isa.as_str() {
        "x86-64" => Isa::X86,
        "arm64" => Isa::Arm,
        other => return Err(explain(format!("`{other}` is no instruction set"))),
    };
    if !threads.threads.iter().flatten().all(|statement| set.has(*statement)) {
        return Err(explain(format!("`{text}` has instructions that {isa} has not")));
    }
    let location = |name: &str| threads.locations.iter().position(|own| own == name);
    let condition = Condition::parse(query, &location).map_err(explain)?;
    let lines = (0..threads.locations.len()).map(|location| if threads.share_a_line { 0 } else { location });
    Ok(LitmusTest {
        id: id.clone(),
        isa: set,
        text: text.clone(),
        lines: lines.collect(),
        threads: threads.threads,
        locations: threads.locations,
        question: query.clone(),
        query: condition,
        is_allowed: match verdict.as_str() {
            "allowed" => true,
            "forbidden" => false,
            other => return Err(format!("{id}: `{other}` is no verdict")),
        },
        published_states: match states.as_str() {
            "" => None,
            number => Some(number.parse().map_err(|_| format!("{id}: `{number}` is no number of states"))?),
        },
        source: source.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_a_test() {
        let (processor, fabric) = (processor_tests(), fabric_tests());
        assert_eq!(processor.iter().filter(|test| test.isa == Isa::X86).count(), 19);
        assert_eq!(processor.iter().filter(|test| test.isa == Isa::Arm).count(), 8);
        assert_eq!(fabric.len(), 8);
        assert_eq!(processor[1].lines, [0, 0], "px86-02 has both in one line");
    }

    #[test]
    fn instructions_of_another_instruction_set_are_refused() {
        let table = |isa: &str, text: &str| format!("{}\nt1,{isa},{text},x,allowed,,here", COLUMNS.join(","));
        for (isa, text) in [
            ("x86-64", "x=1; DSB"),
            ("x86-64", "x=1; DMB"),
            ("arm64", "x=1; sfence"),
            ("arm64", "x=1; mfence"),
            ("arm64", "x=1; clflush x"),
            ("arm64", "lock xchg x=1"),
        ] {
            let error = tests_of(&table(isa, text)).unwrap_err();
            assert_eq!(error, format!("t1: `{text}` has instructions that {isa} has not"));
        }
        assert_eq!(tests_of(&table("arm", "x=1")).unwrap_err(), "t1: `arm` is no instruction set");
        assert!(tests_of(&table("arm64", "x=1; DC CVAP x; DSB")).is_ok());
    }

    #[test]
    fn a_quoted_field_may_have_commas() {
        assert_eq!(fields(r#"a,"{0,1}",,c"#), ["a", "{0,1}", "", "c"]);
    }
}
