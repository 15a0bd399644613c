//! The shape of the source: layers, invariants, sizes. Reads the files as text and lists every offender with its line.
//!
//! The order of the layers is the one that the documentation of `src/lib.rs` states: there is no second copy of it.

use std::collections::BTreeMap;
use std::path::Path;

use hanzo_edge::models::ARCHITECTURES;
use hanzo_edge::quant::BLOCK_FORMATS;

const MOST_LINES: usize = 1000;
const MOST_FUNCTION_LINES: usize = 70;

/// A source file: its path from the repository's root, with `/`.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Lines with their numbers, without comments and without test modules.
    fn code(&self) -> Vec<(usize, &str)> {
        if self.is_test() {
            return Vec::new();
        }
        let mut code = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if line.trim() == "#[cfg(test)]" {
                skip_item(&mut lines);
            } else if !line.trim_start().starts_with("//") {
                code.push((index + 1, line));
            }
        }
        code
    }

    /// Files that only tests compile are named so.
    fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.ends_with("samples.rs")
    }

    /// The module's path within the crate, e.g. `["quant", "pack"]`.
    fn module(&self) -> Vec<&str> {
        let path = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        path.split('/').filter(|part| !matches!(*part, "mod" | "lib")).collect()
    }

    fn layer(&self) -> &str {
        self.module().first().copied().unwrap_or_default()
    }

    fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// Drops the lines of the item after an attribute: up to a line that ends as the item began, with `;` or a block.
fn skip_item<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) {
    let mut close = None;
    for (_, line) in lines {
        if let Some(close) = &close {
            if line == close {
                return;
            }
        } else if line.trim_end().ends_with('{') {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            close = Some(format!("{indent}}}"));
        } else if line.trim_end().ends_with([';', '}']) {
            return;
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below `folder` with one of these extensions, in order of their paths.
fn files(folder: &str, extensions: &[&str]) -> Vec<Source> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.ends_with("node_modules") {
                // Not ours: what the side-by-side bench installs.
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted)) {
                found.push(Source { path: relative(&path), text: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn relative(path: &Path) -> String {
    slashed(path.strip_prefix(root()).unwrap())
}

fn slashed(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

fn sources() -> Vec<Source> {
    let sources = files("src", &["rs"]);
    assert!(sources.len() > 50, "found only {} source files", sources.len());
    sources
}

fn assert_none(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}; {} found:\n  {}", offenders.len(), offenders.join("\n  "));
}

/// Rank of each layer, from the documentation of the crate: groups between `·`, names in backticks.
fn ranks() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let order = text.split("The layers, lowest first").nth(1).expect("lib.rs states the layers");
    let order: String =
        order.split("\n\n").next().unwrap().lines().skip(1).map(|line| line.trim_start_matches("//!")).collect();
    let mut ranks = BTreeMap::new();
    for (rank, group) in order.split('·').enumerate() {
        for name in group.split('`').skip(1).step_by(2) {
            assert!(ranks.insert(name.to_owned(), rank).is_none(), "{name} is listed twice");
        }
    }
    assert!(ranks.len() >= 15 && ranks["error"] == 0, "cannot read the layers of src/lib.rs: {ranks:?}");
    ranks
}

/// The modules right below the crate that a line of `module` names: after `crate::`, or after enough `super::`.
fn crate_modules(line: &str, depth: usize) -> Vec<String> {
    let to_root = "super::".repeat(depth.max(1));
    let mut found = Vec::new();
    for marker in ["crate::", to_root.as_str()] {
        for (at, _) in line.match_indices(marker) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                continue;
            }
            let rest = &line[at + marker.len()..];
            match rest.strip_prefix('{') {
                Some(group) => found.extend(top_level_names(group)),
                None => found.push(leading_name(rest)),
            }
        }
    }
    found
}

fn leading_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// First names of the members of `a::{b, c}, d::e}`.
fn top_level_names(group: &str) -> Vec<String> {
    let (mut depth, mut member, mut names) = (0, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(leading_name(std::mem::take(&mut member).trim())),
            c if depth == 0 => member.push(c),
            _ => {}
        }
    }
    names.push(leading_name(member.trim()));
    names
}

#[test]
fn modules_use_only_lower_layers() {
    let ranks = ranks();
    let mut offenders = Vec::new();
    for source in sources() {
        let layer = source.layer();
        if matches!(layer, "" | "cli") {
            continue;
        }
        let Some(&rank) = ranks.get(layer) else {
            offenders.push(format!("{}: {layer} is not among the layers of src/lib.rs", source.path));
            continue;
        };
        // A file `a/b.rs` is module `a::b`, whose root is two `super` away.
        for (number, line) in source.code() {
            for used in crate_modules(line, source.module().len()) {
                if used != layer && ranks.get(&used).is_some_and(|&used| used >= rank) {
                    offenders.push(format!("{}:{number}: {layer} uses {used}", source.path));
                }
            }
        }
    }
    assert_none("a module uses only strictly lower layers", offenders);
}

#[test]
fn the_command_line_uses_only_the_public_crate() {
    let ranks = ranks();
    let mut offenders = Vec::new();
    for source in sources().iter().filter(|source| source.layer() == "cli") {
        for (number, line) in source.code() {
            if line.trim_start().starts_with("#[path") || (line.contains("include!") && line.contains("..")) {
                offenders.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
            for used in crate_modules(line, 1).iter().filter(|used| ranks.contains_key(*used)) {
                if !root().join(format!("src/cli/{used}.rs")).exists() {
                    offenders.push(format!("{}:{number}: uses crate::{used}", source.path));
                }
            }
        }
    }
    assert_none("src/cli uses `hanzo_edge::`", offenders);
}

#[test]
fn what_belongs_to_one_folder_stays_there() {
    const PURE: &[&str] = &["src/format/", "src/graph/", "src/ops/", "src/models/", "src/optimize/", "src/plan/"];
    const WEB: &[&str] = &["src/web/"];
    #[rustfmt::skip]
    let rules: &[(&str, &[&str], &[&str])] = &[
        // What, where it may not be, where it may be after all.
        ("wgpu::", &["src/"], &["src/backend/wgpu/", "src/backend/mod.rs"]),
        ("wasm_bindgen", &["src/"], WEB),
        ("js_sys", &["src/"], WEB),
        ("web_sys", &["src/"], WEB),
        ("std::fs", PURE, &[]),
        ("std::net", PURE, &[]),
        ("std::time", PURE, &[]),
        ("std::env", PURE, &[]),
        ("std::thread", PURE, &[]),
        ("crate::quant", &["src/models/"], &[]),
        ("crate::format", &["src/ops/", "src/graph/"], &[]),
        ("gguf", &["src/ops/", "src/graph/", "src/optimize/", "src/plan/", "src/backend/", "src/generate/"], &[]),
    ];
    let mut offenders = Vec::new();
    for source in sources() {
        for (what, forbidden, allowed) in rules {
            if !source.is_in(forbidden) || source.is_in(allowed) {
                continue;
            }
            let lines = source.code().into_iter().filter(|(_, line)| line.to_lowercase().contains(what));
            offenders.extend(lines.map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim())));
        }
    }
    assert_none("some names belong to one folder", offenders);
}

#[test]
fn formats_and_architectures_are_told_apart_only_in_their_folders() {
    let plain = ["f32", "f16", "bf16"];
    let formats = BLOCK_FORMATS.iter().map(|format| format.name).filter(|name| !plain.contains(name));
    let names: Vec<(&str, &[&str])> = formats
        .map(|name| (name, ["src/quant/"].as_slice()))
        // A kind of tokenizer is called llama too.
        .chain(ARCHITECTURES.iter().map(|row| (row.name, ["src/models/", "src/text/"].as_slice())))
        .collect();
    let mut offenders = Vec::new();
    for source in sources() {
        for (number, line) in source.code() {
            for (name, allowed) in &names {
                if line.to_lowercase().contains(&format!("\"{name}\"")) && !source.is_in(allowed) {
                    offenders.push(format!("{}:{number}: {}", source.path, line.trim()));
                }
            }
        }
    }
    assert_none("a format or architecture is named only in its own folder", offenders);
}

#[test]
fn every_row_of_a_table_is_listed() {
    let mut offenders = Vec::new();
    for (folder, defines, row) in
        [("quant", "static FORMAT", "FORMAT"), ("models", "fn build(", "build"), ("optimize", "fn run(", "run")]
    {
        let table = std::fs::read_to_string(root().join(format!("src/{folder}/mod.rs"))).unwrap();
        let of_folder = files(&format!("src/{folder}"), &["rs"]);
        let rows: Vec<&Source> =
            of_folder.iter().filter(|source| source.module().len() == 2 && source.text.contains(defines)).collect();
        assert!(!rows.is_empty(), "no file of src/{folder} has {defines:?}");
        for source in rows {
            let entry = format!("{}::{row}", source.module()[1]);
            if !source.is_test() && !table.contains(&entry) {
                offenders.push(format!("{}: {entry} is not in src/{folder}/mod.rs", source.path));
            }
        }
    }
    assert_none("a file of a table's folder is a row of the table", offenders);
}

#[test]
fn every_source_file_is_compiled() {
    let sources = sources();
    let mut offenders = Vec::new();
    for source in &sources {
        let path = Path::new(&source.path);
        let (folder, stem) = (path.parent().unwrap(), path.file_stem().unwrap().to_string_lossy());
        let (parent, name) = match stem.as_ref() {
            "lib" | "main" => continue,
            "mod" => (folder.parent().unwrap(), folder.file_name().unwrap().to_string_lossy()),
            _ => (folder, stem),
        };
        let roots = ["mod.rs", "lib.rs", "main.rs"].map(|file| slashed(&parent.join(file)));
        let parents =
            sources.iter().filter(|other| roots.contains(&other.path) || other.path == slashed(parent) + ".rs");
        // Modules of tests and of single platforms may lie elsewhere: their subject names their file.
        let attribute = format!("{name}.rs\"");
        if !parents.into_iter().any(|other| declares(other, &name))
            && !sources.iter().any(|other| other.text.contains(&attribute))
        {
            offenders.push(source.path.clone());
        }
    }
    assert_none("every file is a module of its folder", offenders);
}

/// Whether a file has `mod name;`, whatever its visibility.
fn declares(source: &Source, name: &str) -> bool {
    let declaration = format!("mod {name};");
    source.text.lines().map(str::trim).any(|line| {
        line.strip_suffix(&declaration).is_some_and(|before| before.is_empty() || before.starts_with("pub"))
    })
}

#[test]
fn every_shader_is_used() {
    let code: String = sources().into_iter().map(|source| source.text).collect();
    let unused = files("shaders", &["wgsl"]).into_iter().filter(|shader| {
        let from_root = shader.path.trim_start_matches("shaders/");
        let stem = from_root.trim_end_matches(".wgsl");
        !code.contains(&shader.path)
            && !code.contains(&format!("\"{from_root}\""))
            && !code.contains(&format!("\"{stem}\""))
    });
    assert_none("every shader is used by name", unused.map(|shader| shader.path).collect());
}

#[test]
fn files_and_functions_fit_their_bounds() {
    let mut offenders = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        for source in files(folder, &["rs"]) {
            let lines: Vec<&str> = source.text.lines().collect();
            if lines.len() > MOST_LINES {
                offenders.push(format!("{}: {} lines", source.path, lines.len()));
            }
            for (start, len) in long_functions(&lines) {
                offenders.push(format!("{}:{}: a function of {len} lines", source.path, start + 1));
            }
        }
    }
    for folder in ["js", "www", "shaders"] {
        let long = files(folder, &["ts", "wgsl", "js", "mjs"])
            .into_iter()
            .filter(|source| source.text.lines().count() > MOST_LINES);
        offenders.extend(long.map(|source| source.path));
    }
    assert_none(&format!("files have at most {MOST_LINES} lines, functions {MOST_FUNCTION_LINES}"), offenders);
}

/// Start and length of functions that are too long. Formatted code closes a function in the column it began in.
fn long_functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let is_function = code.split("fn ").next().is_some_and(|before| {
            code.len() > before.len()
                && before.split_whitespace().all(|word| {
                    word.starts_with("pub") || matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"")
                })
        });
        if !is_function || line.trim_end().ends_with(['}', ';']) {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - code.len()]);
        if let Some(len) = lines[start..].iter().position(|line| *line == close)
            && len + 1 > MOST_FUNCTION_LINES
        {
            long.push((start, len + 1));
        }
    }
    long
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let mut offenders = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        let bare = files(folder, &["rs"]).into_iter().filter(|source| !source.text.starts_with("//! "));
        offenders.extend(bare.map(|source| source.path));
    }
    for folder in ["shaders", "js", "www", "scripts"] {
        let bare = files(folder, &["wgsl", "ts", "mjs", "py"]).into_iter().filter(|source| {
            !["//", "/*", "#", "\"\"\""].iter().any(|comment| source.text.trim_start().starts_with(comment))
        });
        offenders.extend(bare.map(|source| source.path));
    }
    assert_none("every file opens with what it is for", offenders);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["todo", "!("], ["unimplemented", "!("]]
        .map(|parts| parts.concat());
    let mut offenders = Vec::new();
    for folder in ["src", "shaders", "js", "www", "scripts", "tests", "benches", "examples"] {
        for source in files(folder, &["rs", "wgsl", "ts", "mjs", "js", "html", "css", "py"]) {
            // The test runner's own output uses one of the words.
            if source.path.contains("scripts/") && source.path.contains("/results") {
                continue;
            }
            for (index, line) in source.text.lines().enumerate() {
                if words.iter().any(|word| line.contains(word.as_str())) {
                    offenders.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
                }
            }
        }
    }
    assert_none("nothing is left for later", offenders);
}

#[test]
fn the_checks_see_what_they_look_for() {
    assert_eq!(crate_modules("use crate::text::Tokenizer;", 2), ["text"]);
    assert_eq!(crate_modules("use crate::{error::{Error, Result}, plan};", 2), ["error", "plan"]);
    assert_eq!(crate_modules("let x = super::super::plan::Plan::new(super::y);", 2), ["plan"]);
    assert_eq!(crate_modules("use super::plan; // $crate::x hanzo_crate::y", 2), Vec::<String>::new());
    let long: Vec<String> = [vec!["    pub(super) fn f(", "    ) {"], vec!["        x();"; 70], vec!["    }"]]
        .concat()
        .iter()
        .map(|s| (*s).to_owned())
        .collect();
    let lines: Vec<&str> = long.iter().map(String::as_str).collect();
    assert_eq!(long_functions(&lines), [(0, 73)]);
    assert_eq!(long_functions(&lines[..20]), []);
    let text =
        "//! x\nuse a;\n#[cfg(test)]\nmod tests {\n    use b;\n}\n// crate::c\nuse d;\n#[cfg(test)]\nmod more;\nuse e;";
    let source = Source { path: "src/a/b.rs".into(), text: text.into() };
    assert_eq!(source.code(), [(2, "use a;"), (8, "use d;"), (11, "use e;")]);
    assert_eq!((source.module(), source.layer()), (vec!["a", "b"], "a"));
}
