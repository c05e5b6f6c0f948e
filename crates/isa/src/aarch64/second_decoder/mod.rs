//! The registers of each instruction, against those of a second decoder.

use std::collections::BTreeSet;

use yaxpeax_arm::armv8::a64::Instruction;

use super::instruction;
use super::operands::Operands;
use crate::micro_op::Register;

type Names = BTreeSet<String>;

const FIXTURE: &str = include_str!("fixture.txt");

/// An instruction as the second decoder has it.
struct Line<'a> {
    word: u32,
    mnemonic: &'a str,
    read: Names,
    written: Names,
}

fn lines() -> impl Iterator<Item = Line<'static>> {
    FIXTURE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (read, written) = line.split_once('>').expect("registers read > registers written");
        let mut read = read.split_whitespace();
        let word = read.next().and_then(|word| u32::from_str_radix(word, 16).ok()).expect("a word");
        let mnemonic = read.next().expect("a mnemonic");
        let names = |names: std::str::SplitWhitespace<'_>| names.map(str::to_owned).collect();
        Line { word, mnemonic, read: names(read), written: names(written.split_whitespace()) }
    })
}

fn name(register: Register) -> String {
    let numbers = 0..32;
    match register {
        Register::FLAGS => "nzcv".into(),
        _ if register == Register::general(31) => "sp".into(),
        _ if register.is_vector() => {
            format!("v{}", numbers.clone().find(|&number| Register::vector(number) == register).unwrap())
        }
        _ => format!("x{}", numbers.clone().find(|&number| Register::general(number) == register).unwrap()),
    }
}

fn names<'a>(registers: impl IntoIterator<Item = &'a Register>) -> Names {
    registers.into_iter().filter(|&&register| register != Register::NONE).map(|&register| name(register)).collect()
}

/// Our sets of registers.
fn ours(instruction: &Instruction) -> (Names, Names) {
    let own = Operands::of(instruction);
    let (base, step) = own.advanced.unwrap_or_default();
    let read = names(own.address.iter().chain(&own.read).chain([&base, &step]));
    (read, names(own.written.iter().chain([&base])))
}

/// A mistake of the second decoder: in which instructions, and what is right by the Arm Architecture Reference Manual.
struct Mistake {
    mnemonics: &'static [&'static str],
    mend: fn(&mut Line<'_>),
}

const MISTAKES: [Mistake; 8] = [
    // A part of the destination stays: `Elem[V[d], …] = …`, or the upper half is written and the lower one kept.
    // Otherwise the destination is an operand as well: what is inserted into, accumulated to, selected by.
    Mistake {
        mnemonics: &[
            "addhn2",
            "bic",
            "bif",
            "bit",
            "bsl",
            "fcvtn2",
            "fcvtxn2",
            "fmov",
            "ins",
            "ld1",
            "ld2",
            "ld3",
            "ld4",
            "mla",
            "mls",
            "orr",
            "raddhn2",
            "rshrn2",
            "rsubhn2",
            "saba",
            "sabal",
            "sabal2",
            "sadalp",
            "sha1c",
            "sha1m",
            "sha1p",
            "sha1su0",
            "sha1su1",
            "sha256h",
            "sha256h2",
            "sha256su0",
            "sha256su1",
            "shrn2",
            "sli",
            "sm3partw1",
            "sm3partw2",
            "sm3tt1a",
            "sm3tt1b",
            "sm3tt2a",
            "sm3tt2b",
            "sm4e",
            "smlal",
            "smlal2",
            "smlsl",
            "smlsl2",
            "sqdmlal",
            "sqdmlal2",
            "sqdmlsl",
            "sqdmlsl2",
            "sqrshrn2",
            "sqrshrun2",
            "sqshrn2",
            "sqshrun2",
            "sqxtn2",
            "sqxtun2",
            "sri",
            "srsra",
            "ssra",
            "subhn2",
            "suqadd",
            "uaba",
            "uabal",
            "uabal2",
            "uadalp",
            "uqrshrn2",
            "uqshrn2",
            "uqxtn2",
            "ursra",
            "usqadd",
            "usra",
            "xtn2",
        ],
        mend: |line| {
            let vectors = line.written.iter().filter(|name| name.starts_with('v')).cloned();
            line.read.extend(vectors);
        },
    },
    // The table is as many registers as bits 13 and 14 say, not the first one alone.
    Mistake { mnemonics: &["tbl"], mend: read_table },
    // The same, and elements whose index is out of range keep their value.
    Mistake {
        mnemonics: &["tbx"],
        mend: |line| {
            read_table(line);
            line.read.insert(format!("v{}", line.word & 31));
        },
    },
    // It adds two registers to a third: the destination is no operand.
    Mistake {
        mnemonics: &["fcadd"],
        mend: |line| line.read = [line.word >> 5 & 31, line.word >> 16 & 31].map(|number| format!("v{number}")).into(),
    },
    // They store.
    Mistake { mnemonics: &["stllr", "stllrb", "stllrh"], mend: |line| line.read.append(&mut line.written) },
    // With L = 0 the register is an operand of the system instruction.
    Mistake { mnemonics: &["sys"], mend: |line| line.read.append(&mut line.written) },
    // It sets the flags.
    Mistake { mnemonics: &["subps"], mend: |line| _ = line.written.insert("nzcv".into()) },
    // It writes those flags that its mask selects.
    Mistake { mnemonics: &["rmif"], mend: |line| _ = line.read.insert("nzcv".into()) },
];

fn read_table(line: &mut Line<'_>) {
    let (first, more) = (line.word >> 5 & 31, line.word >> 13 & 3);
    line.read.extend((0..=more).map(|place| format!("v{}", (first + place) % 32)));
}

/// Instructions that `yaxpeax-arm` 0.5.0 does not know: they become integer operations without registers, and access
/// what their slots say.
const UNKNOWN: [&[&str]; 4] = [
    // SVE, which is not supported: the C library has copies of memory for processors with it.
    &["cntb", "cntd", "dup", "ld1b", "ptrue", "st1b", "whilelo"],
    // Arithmetic of machine learning (FHM, BF16, I8MM) and rounding to integers of a size (FRINTTS), of vectors.
    &[
        "bfcvt", "bfcvtn", "bfcvtn2", "bfdot", "bfmlalb", "bfmlalt", "bfmmla", "fmlal", "fmlal2", "fmlsl", "fmlsl2",
        "frint32x", "frint64x", "smmla", "sudot", "ummla", "usdot", "usmmla",
    ],
    // Tagged memory (MTE).
    &["addg", "stgp", "subg"],
    // Waiting with a timeout.
    &["wfet", "wfit"],
];

#[test]
fn registers_are_those_of_the_second_decoder() {
    let mut differing = Vec::new();
    for mut line in lines() {
        let Some(instruction) = instruction::decode(line.word) else { continue };
        let ours = ours(&instruction);
        if (&ours.0, &ours.1) != (&line.read, &line.written)
            && let Some(mistake) = mistake_of(line.mnemonic)
        {
            (mistake.mend)(&mut line);
        }
        if (&ours.0, &ours.1) != (&line.read, &line.written) {
            let (word, mnemonic, theirs) = (line.word, line.mnemonic, (line.read, line.written));
            differing.push(format!("{word:08x} {mnemonic} ({instruction}): ours {ours:?}, theirs {theirs:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn mistake_of(mnemonic: &str) -> Option<&'static Mistake> {
    MISTAKES.iter().find(|mistake| mistake.mnemonics.contains(&mnemonic))
}

#[test]
fn the_second_decoder_still_makes_each_mistake() {
    let wrong: BTreeSet<&str> = lines()
        .filter(|line| {
            instruction::decode(line.word)
                .is_some_and(|instruction| ours(&instruction) != (line.read.clone(), line.written.clone()))
        })
        .map(|line| line.mnemonic)
        .collect();
    let listed: BTreeSet<&str> = MISTAKES.iter().flat_map(|mistake| mistake.mnemonics).copied().collect();
    assert_eq!(listed, wrong);
}

#[test]
fn every_other_instruction_is_known() {
    let unknown = lines().filter(|line| instruction::decode(line.word).is_none());
    let unknown: BTreeSet<&str> = unknown.map(|line| line.mnemonic).collect();
    assert_eq!(unknown, UNKNOWN.concat().into_iter().collect());
}
