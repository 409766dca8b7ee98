//! The suites: their tests, their budgets of processor time, and which programs run in parallel.

use std::time::Duration;

use super::program::{CargoProgram, TestProgram};
use super::schedule::{WHOLE, Weight};

/// Tests that share a budget.
pub struct Suite {
    pub name: &'static str,
    pub tests: Tests,
    /// Processor time; the run warns if it is exceeded.
    pub budget: Duration,
    /// Whether its tests use real programs outside their own process. If so, a test that fails is
    /// run once more, unless it is marked (`testbed::no_second_try`).
    pub real_parts: bool,
}

pub enum Tests {
    /// All programs of a package, or one program, as in `storage::etcd`.
    Cargo(&'static [&'static str]),
    AllOther,
    /// Tests of the web interface, by their Vitest configuration in `ui`.
    Vitest(&'static str),
}

const fn minutes(number: u64) -> Duration {
    Duration::from_secs(number * 60)
}

/// In the order in which they fail fastest.
pub const SUITES: [Suite; 5] = [
    Suite {
        name: "interface",
        tests: Tests::Vitest("vite.config.ts"),
        budget: minutes(1),
        real_parts: false,
    },
    Suite { name: "in process", tests: Tests::AllOther, budget: minutes(6), real_parts: false },
    Suite {
        name: "real parts",
        tests: Tests::Cargo(&[
            "kubernetes-api::aggregation",
            "apiserver::policy",
            "apiserver::published",
            "kubernetes-api::upstream",
            "kubernetes-api::webhooks",
            "kubernetes-protobuf",
            "storage::etcd",
            "structured-merge::real",
            "test-kit::directories",
            "test-kit::downstream",
            "testbed",
            "xtask",
        ]),
        budget: minutes(8),
        real_parts: true,
    },
    Suite { name: "system", tests: Tests::Cargo(&["e2e"]), budget: minutes(20), real_parts: true },
    Suite {
        name: "browser",
        tests: Tests::Vitest("e2e/vitest.config.ts"),
        budget: minutes(12),
        real_parts: true,
    },
];

/// The programs of a suite are killed after this many budgets of wall-clock time.
pub const DEADLINE_BUDGETS: u32 = 3;

/// Default weight of a program: test programs run two tests at a time, which rarely both compute
/// all the time.
const DEFAULT_WEIGHT: Weight = 50;

/// Weights of other programs, measured, with a margin for a slower machine. They start in this
/// order, slow ones first; then all others, by name.
const WEIGHTS: [(&str, Weight); 9] = [
    ("e2e::controller_manager", 5),
    ("e2e::differential", 20),
    ("e2e::agent_pod", 20),
    ("e2e::streaming", 40),
    ("e2e::drains", 40),
    ("e2e::import_trouble", 15),
    ("storage::etcd", 25),
    ("testbed::node", 25),
    ("history::embedded", DEFAULT_WEIGHT),
];

/// Programs whose tests all protect the same guarantee, so that they need no mark in each test.
const GUARANTEES: [(&str, &str); 1] = [("storage::etcd", "durability and consistency")];

/// The guarantee of all tests of a program.
pub fn guarantee(program: &str) -> Option<&'static str> {
    GUARANTEES.iter().find(|(name, _)| *name == program).map(|(_, guarantee)| *guarantee)
}

impl Suite {
    /// Its programs among `built`, with their weights, in the order in which they begin.
    pub fn programs(&self, built: &mut Vec<CargoProgram>) -> Vec<(Weight, TestProgram)> {
        if let Tests::Vitest(configuration) = self.tests {
            return vec![(WHOLE, TestProgram::Vitest { suite: self.name, configuration })];
        }
        let own = built.extract_if(.., |program| self.holds(&program.package, &program.name()));
        let mut own: Vec<CargoProgram> = own.collect();
        own.sort_by_key(|program| order(&program.name()));
        own.into_iter().map(|one| (weight(&one.name()), TestProgram::Cargo(one))).collect()
    }

    fn holds(&self, package: &str, program: &str) -> bool {
        let named = |suite: &Self| match suite.tests {
            Tests::Cargo(names) => names.iter().any(|name| *name == package || *name == program),
            Tests::AllOther | Tests::Vitest(_) => false,
        };
        match self.tests {
            Tests::AllOther => !SUITES.iter().any(named),
            Tests::Cargo(_) | Tests::Vitest(_) => named(self),
        }
    }

    /// Packages whose programs all belong to it.
    pub fn packages(&self) -> impl Iterator<Item = &'static str> {
        let names = match self.tests {
            Tests::Cargo(names) => names,
            Tests::AllOther | Tests::Vitest(_) => &[],
        };
        names.iter().copied().filter(|name| !name.contains("::"))
    }
}

fn weight(program: &str) -> Weight {
    WEIGHTS.iter().find(|(name, _)| *name == program).map_or(DEFAULT_WEIGHT, |(_, weight)| *weight)
}

/// Its index in the table of weights, or the length of the table.
fn order(program: &str) -> usize {
    WEIGHTS.iter().position(|(name, _)| *name == program).unwrap_or(WEIGHTS.len())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::workspace;

    /// The programs of a package by the names of their files, with the paths of their sources.
    fn programs(package: &str, folder: &Path) -> Vec<(String, Vec<PathBuf>)> {
        let mut programs = vec![(package.to_owned(), vec![folder.join("src")])];
        let Ok(entries) = std::fs::read_dir(folder.join("tests")) else { return programs };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "rs") {
                let stem = path.file_stem().unwrap().to_str().unwrap();
                let name = format!("{package}::{stem}");
                programs.push((name, vec![path.clone(), path.with_extension("")]));
            }
        }
        programs
    }

    fn mentions_testbed(path: &Path) -> bool {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            return entries.into_iter().any(|entry| mentions_testbed(&entry.unwrap().path()));
        }
        let is_rust = path.extension().is_some_and(|ending| ending == "rs");
        is_rust && std::fs::read_to_string(path).unwrap().contains("testbed::")
    }

    #[test]
    fn every_program_belongs_to_one_suite_and_real_parts_to_those_that_have_them() {
        let metadata = workspace::metadata(&workspace::root(), &["--no-deps", "--offline"]);
        for package in metadata.unwrap().packages {
            for (name, sources) in programs(&package.name, package.manifest_path.parent().unwrap())
            {
                let suites: Vec<&Suite> =
                    SUITES.iter().filter(|suite| suite.holds(&package.name, &name)).collect();
                assert_eq!(suites.len(), 1, "{name}");
                let real = sources.iter().any(|path| mentions_testbed(path));
                assert!(!real || suites[0].real_parts, "{name} starts real programs");
            }
        }
    }

    #[test]
    fn every_name_of_a_suite_and_a_weight_is_a_program() {
        let metadata = workspace::metadata(&workspace::root(), &["--no-deps", "--offline"]);
        let packages = metadata.unwrap().packages;
        let all: Vec<String> = packages
            .iter()
            .flat_map(|one| programs(&one.name, one.manifest_path.parent().unwrap()))
            .map(|(name, _)| name)
            .collect();
        let named = SUITES.iter().filter_map(|suite| match suite.tests {
            Tests::Cargo(names) => Some(names.iter()),
            Tests::AllOther | Tests::Vitest(_) => None,
        });
        let weighed = WEIGHTS.iter().map(|(name, _)| name);
        let guarded = GUARANTEES.iter().map(|(name, _)| name);
        for name in named.flatten().chain(weighed).chain(guarded) {
            assert!(all.iter().any(|known| known == name), "there is no program '{name}'");
        }
    }
}
