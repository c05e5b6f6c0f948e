//! Functions whose calls are operations, though the program says nothing of them: found by name among the symbols of
//! the modules that were loaded.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use addr2line::gimli::DW_LANG_Rust;
use cpp_demangle::{DemangleOptions, Symbol};
use fencepost_record::{LoadedModule, MarkKind, Record};
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};

use super::CrashError;
use super::origins::is_of_system;
use super::sites::CallStack;
use super::source_lines::{first_address, is_as_recorded};

/// A function that a user named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// The address behind its last instruction.
    end: u64,
}

/// By the address of its first instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFunctions(HashMap<u64, Function>);

impl NamedFunctions {
    /// Those of `record` that have these names, without arguments and namespaces: the program's own, or where it has
    /// none of a name, those of libraries of the system.
    ///
    /// # Errors
    /// If the record cannot be read, or there is none of a name; if there may be one in a module that has been built
    /// anew since.
    pub fn of_record(record: &Record, names: &[String]) -> Result<NamedFunctions, CrashError> {
        let mut found = NamedFunctions::default();
        if names.is_empty() {
            return Ok(found);
        }
        let map = record.memory_map()?;
        let (system, own): (Vec<_>, Vec<_>) =
            map.modules().iter().partition(|module| is_of_system(&module.path.to_string()));
        let mut left: BTreeSet<&String> = names.iter().collect();
        for modules in [own, system] {
            let wanted = std::mem::take(&mut left);
            let files = modules.into_iter().filter(|module| Path::new(module.path.as_os_str()).is_file());
            let (known, changed): (Vec<_>, Vec<_>) = files.partition(|module| is_as_recorded(module));
            let symbols: Vec<_> = known.into_iter().flat_map(functions).collect();
            for name in wanted {
                let named = symbols.iter().filter(|(_, function)| is_named(&function.name, name));
                let named: Vec<_> =
                    named.map(|(at, of)| (*at, Function { name: name.clone(), ..of.clone() })).collect();
                if named.is_empty() {
                    left.insert(name);
                }
                found.0.extend(named);
            }
            if let (Some(name), Some(module)) = (left.first(), changed.first()) {
                return Err(CrashError::Unsuitable(format!(
                    "--operation {name}: {} has been built anew since it was recorded, so where its functions were is \
                     not known; record the program again",
                    module.path
                )));
            }
        }
        match left.first() {
            Some(name) => Err(CrashError::Unsuitable(format!(
                "--operation {name}: no module of the record has a function of that name among its symbols; was it \
                 inlined, or the program stripped?"
            ))),
            None => Ok(found),
        }
    }

    /// Whether calls of any function are operations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// All functions of a module, whose names are demangled, by the address that they had.
fn functions(module: &LoadedModule) -> Vec<(u64, Function)> {
    let path = module.path.as_os_str();
    let Ok(file) = std::fs::File::open(path) else { return Vec::new() };
    let content = ReadCache::new(file);
    let Ok(object) = object::File::parse(&content) else { return Vec::new() };
    let first = first_address(path);
    let of_symbol = |symbol: object::Symbol<'_, '_, _>| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let name = symbol.name().ok().filter(|_| is_function)?;
        let start = symbol.address().checked_sub(first)?.checked_add(module.range.start)?;
        Some((start, Function { name: path_of(name), end: start + symbol.size().max(1) }))
    };
    object.symbols().chain(object.dynamic_symbols()).filter_map(of_symbol).collect()
}

/// The name of a function as its source has it, without arguments and result; behind a dot which copy it is.
fn path_of(symbol: &str) -> String {
    if let Some(path) = addr2line::demangle(symbol, DW_LANG_Rust) {
        return path;
    }
    let (name, copy) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let options = DemangleOptions::new().no_params().no_return_type();
    let path = Symbol::new(name).ok().and_then(|parsed| parsed.demangle_with_options(&options).ok());
    path.map_or(symbol.to_owned(), |path| path + copy)
}

/// Template arguments and tags such as `[abi:cxx11]` are no part of it.
fn without_brackets(path: &str) -> String {
    let mut depth = 0_u32;
    let is_outside = |letter: &char| {
        let before = depth;
        match letter {
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before == 0 && depth == 0
    };
    path.chars().filter(is_outside).collect()
}

/// Whether a function is meant by a name that need not have the namespaces around it.
fn is_named(path: &str, name: &str) -> bool {
    let path = without_brackets(path);
    // A copy of it that the compiler made for some of its callers; `.cold` and `.part` are pieces of it.
    let (whole, copy) = path.split_once('.').unwrap_or((&path, ""));
    let is_whole = !copy.contains("cold") && !copy.contains("part");
    let components: Vec<&str> = whole.split("::").filter(|component| !component.is_empty()).collect();
    is_whole && components.ends_with(&name.split("::").collect::<Vec<_>>())
}

/// The call of a named function that a thread is in; of one in another only the outer one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct OperationCalls {
    /// The function, and how many calls the thread was in when it began.
    open: Option<(String, usize)>,
    /// Whether it was left otherwise than by a return.
    is_left: bool,
    /// The last block that the thread executed, and whether it ended with a call.
    previous: (u64, bool),
}

impl OperationCalls {
    /// A block begins, with this stack; `block` is its address. What ends there, and what begins.
    pub fn begin(&mut self, functions: &NamedFunctions, block: u64, stack: &CallStack) -> Vec<(MarkKind, String)> {
        let mut marks = Vec::new();
        if self.is_left || self.open.as_ref().is_some_and(|(_, depth)| stack.depth() < *depth) {
            marks.extend(self.end());
        }
        let (before, is_called) = std::mem::take(&mut self.previous);
        if self.open.is_none()
            && let Some(function) = functions.0.get(&block)
            && (is_called || !(block..function.end).contains(&before))
        {
            self.open = Some((function.name.clone(), stack.depth()));
            marks.push((MarkKind::Begin, function.name.clone()));
        }
        self.previous = (block, false);
        marks
    }

    /// The block has ended with a call, and this is the stack with it. One that is not deeper than the call of an
    /// operation is not of the operation.
    pub fn call(&mut self, stack: &CallStack) {
        self.previous.1 = true;
        self.is_left = self.open.as_ref().is_some_and(|(_, depth)| stack.depth() <= *depth);
    }

    /// What is open has ended, if anything is.
    pub fn end(&mut self) -> Option<(MarkKind, String)> {
        self.is_left = false;
        self.open.take().map(|(name, _)| (MarkKind::End, name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sites::BlockEnd;
    use super::*;

    #[test]
    fn names_are_without_arguments_and_namespaces() {
        for symbol in [
            "insert",
            "insert.isra.0",
            "_Z6inserti",                                                 // insert(int)
            "_Z6inserti.constprop.0",                                     // insert(int) [clone .constprop.0]
            "_ZN3art4tree6insertEic",                                     // art::tree::insert(int, char)
            "_ZN12_GLOBAL__N_16insertEi",                                 // (anonymous namespace)::insert(int)
            "_ZN4treeIiE6insertIiEEvT_",                                  // void tree<int>::insert<int>(int)
            "_ZN4treeIPFicEE6insertIiEEvT_",                              // void tree<int (*)(char)>::insert<int>(int)
            "_ZN3art6insertIPFiiEEEiT_",                                  // int art::insert<int (*)(int)>(int (*)(int))
            "_ZNK4treeIiE6insertEi",                                      // tree<int>::insert(int) const
            "_Z6insertB5cxx11v",                                          // insert[abi:cxx11]()
            "_ZN3map6insert17h0123456789abcdefE",                         // map::insert
            "_ZN26_$LT$map..Map$LT$T$GT$$GT$6insert17h0123456789abcdefE", // <map::Map<T>>::insert
        ] {
            assert!(is_named(&path_of(symbol), "insert"), "{symbol}: {}", path_of(symbol));
        }
        for symbol in [
            "reinsert",
            "insert_all",
            "insert.cold",
            "insert.part.0",
            "_Z6inserti.cold",
            "_ZN4tree6insert4findEi",                 // tree::insert::find(int)
            "_Z7insertsi",                            // inserts(int)
            "_ZZN4treeIiE6insertIiEEvT_ENKUliE_clEi", // a lambda in insert
            "_ZN3art4findI6insertEEvv",               // void art::find<insert>()
        ] {
            assert!(!is_named(&path_of(symbol), "insert"), "{symbol}: {}", path_of(symbol));
        }
        assert!(is_named(&path_of("_ZN3art4tree6insertEi"), "tree::insert"));
        assert!(is_named(&path_of("_ZN3art4treeIiE6insertEi"), "art::tree::insert"));
        assert!(!is_named(&path_of("_ZN7subtree6insertEi"), "tree::insert"));
    }

    /// A thread that executes blocks one after the other.
    struct Thread {
        functions: NamedFunctions,
        stack: CallStack,
        calls: OperationCalls,
    }

    impl Thread {
        fn new(functions: &[(&str, u64)]) -> Thread {
            let named = |&(name, start): &(&str, u64)| (start, Function { name: name.into(), end: start + 100 });
            let functions = NamedFunctions(functions.iter().map(named).collect());
            Thread { functions, stack: CallStack::default(), calls: OperationCalls::default() }
        }

        fn block(&mut self, address: u64, end: BlockEnd) -> Vec<(MarkKind, String)> {
            self.stack.begin(address);
            let marks = self.calls.begin(&self.functions, address, &self.stack);
            self.stack.end(end);
            if matches!(end, BlockEnd::Call { .. }) {
                self.calls.call(&self.stack);
            }
            marks
        }
    }

    fn call(instruction: u64) -> BlockEnd {
        call_from(instruction, 0)
    }

    fn call_from(instruction: u64, frame: u64) -> BlockEnd {
        BlockEnd::Call { instruction, returns_to: instruction + 5, frame }
    }

    fn begin(name: &str) -> Vec<(MarkKind, String)> {
        vec![(MarkKind::Begin, name.into())]
    }

    fn end(name: &str) -> Vec<(MarkKind, String)> {
        vec![(MarkKind::End, name.into())]
    }

    #[test]
    fn an_operation_lasts_from_its_call_to_its_return() {
        let mut thread = Thread::new(&[("insert", 1000), ("remove", 2000)]);
        assert_eq!(thread.block(100, call(110)), []);
        assert_eq!(thread.block(1000, call(1010)), begin("insert"));
        assert_eq!(thread.block(5000, BlockEnd::Return), [], "what it calls is a part of it");
        assert_eq!(thread.block(1015, BlockEnd::Return), []);
        assert_eq!(thread.block(115, call(120)), end("insert"));
        assert_eq!(thread.block(2000, BlockEnd::Return), begin("remove"));
        assert_eq!(thread.block(125, BlockEnd::Other), end("remove"));
    }

    #[test]
    fn a_loop_back_to_the_first_instruction_is_no_call() {
        let mut thread = Thread::new(&[("insert", 1000)]);
        thread.block(100, call(110));
        assert_eq!(thread.block(1000, BlockEnd::Other), begin("insert"));
        assert_eq!(thread.block(1000, BlockEnd::Return), []);
        assert_eq!(thread.block(115, BlockEnd::Other), end("insert"));
    }

    #[test]
    fn a_call_through_a_jump_and_one_inside_of_another_are_of_one_operation() {
        let mut thread = Thread::new(&[("insert", 1000), ("remove", 2000)]);
        thread.block(100, call(110));
        assert_eq!(thread.block(500, BlockEnd::Other), [], "the stub that links to it");
        assert_eq!(thread.block(2000, call(2010)), begin("remove"));
        assert_eq!(thread.block(1000, BlockEnd::Return), []);
        assert_eq!(thread.block(2015, BlockEnd::Return), []);
        assert_eq!(thread.block(115, BlockEnd::Other), end("remove"));
    }

    #[test]
    fn an_operation_that_longjmp_leaves_has_ended_at_the_next_call_of_its_caller() {
        let mut thread = Thread::new(&[("insert", 1000)]);
        let both: Vec<_> = [end("insert"), begin("insert")].concat();
        thread.block(100, call_from(110, 8000));
        assert_eq!(thread.block(1000, call_from(1010, 7900)), begin("insert"));
        thread.block(5000, BlockEnd::Other); // `longjmp`
        assert_eq!(thread.block(200, call_from(210, 8000)), [], "nobody can tell before");
        assert_eq!(thread.block(6000, BlockEnd::Return), end("insert"));
        assert_eq!(thread.block(215, call_from(110, 8000)), []);
        assert_eq!(thread.block(1000, call_from(1010, 7900)), begin("insert"));
        thread.block(5000, BlockEnd::Other);
        thread.block(100, call_from(110, 8000));
        assert_eq!(thread.block(1000, BlockEnd::Return), both, "the same call again");
    }
}
