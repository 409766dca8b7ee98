//! Shell completion: commands, flags, and names of objects on the server.
//!
//! The scripts of `drover completion` run this program with the typed line, and [`complete_line`]
//! responds in place of a command. It never writes to stderr, which would appear in the middle of
//! that line: without a login, or with a slow server, no names are offered.

use std::ffi::OsStr;
use std::future::Future;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use serde_json::Value;

use crate::api::{self, Api, NamedType, text};
use crate::args::{OutputFormat, Shell};
use crate::commands::driver_options::DriverOptions;
use crate::commands::{driver, kubectl, namespace, node, scope};
use crate::config;
use crate::error::{CliError, Failure};
use crate::output;
use crate::types::Type;

/// Names the shell for which this program completes a line; set by the scripts.
const VARIABLE: &str = "DROVER_COMPLETE";
/// Longest time for which completion blocks the shell.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of offered names; with more, the user types a letter first.
const OFFERED_MAX: usize = 500;

/// If a shell requests completions, prints them and ends the process; otherwise does nothing. Must
/// be called before anything is printed and before other threads are started.
pub fn complete_line(program: fn() -> clap::Command) {
    CompleteEnv::with_factory(program).var(VARIABLE).complete();
}

/// The script with which a shell requests completions from the program called `name`.
pub fn script(shell: Shell, name: &str) -> Result<String, CliError> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, name, name, name, &mut script).map_err(|error| {
        CliError::new(Failure::Other, format!("making the completion script: {error}"))
    })?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Names of stored logins.
pub fn logins() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let config = config::path().and_then(|path| config::load(&path)).unwrap_or_default();
        let logins = config.contexts.into_iter().map(|(name, context)| (name, context.server));
        candidates(typed, logins)
    })
}

/// Formats of data on stdout.
pub fn formats() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let pair = |(name, help): (&str, &str)| (name.to_owned(), help.to_owned());
        let typed = typed.to_string_lossy();
        let offers = OutputFormat::OFFERED.map(pair).into_iter();
        let matching = offers.filter(|(name, _)| name.starts_with(&*typed));
        matching
            .map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into())))
            .collect()
    })
}

/// Completes names of cluster drivers, with their states.
pub fn drivers() -> ArgValueCompleter {
    offer(async |api, _| offer_names(&api, &driver::DRIVER, "state").await)
}

/// Names of the options of the driver on the line, each with `=`.
pub fn driver_options() -> ArgValueCompleter {
    offer(async |api, line| {
        let Some(driver) = line.flag("--driver") else { return Ok(Vec::new()) };
        let options = DriverOptions::of_driver(&api, driver).await?;
        let offered = options.rows().into_iter().map(|row| {
            let name = text(&row, "flag").trim_start_matches('-');
            (format!("{name}="), text(&row, "description").to_owned())
        });
        Ok(offered.collect())
    })
}

/// Completes names of clusters, with their states.
pub fn clusters() -> ArgValueCompleter {
    offer(async |api, _| offer_names(&api, &api::CLUSTER, "state").await)
}

/// Projects of the cluster on the line, else the context's, else all.
pub fn projects() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = scope::chosen_cluster(&api, line.flag("--cluster")).await?;
        let inside = cluster.as_ref().map(|cluster| ("clusterId", api::id(cluster)));
        offer_names(&api, &NamedType { inside, ..api::PROJECT }, "id").await
    })
}

/// Namespaces of the cluster on the line, else the context's.
pub fn namespaces() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = scope::cluster(&api, line.flag("--cluster")).await?;
        let found = api.list_kube(&namespace::path(&cluster), "listing namespaces").await?;
        Ok(pairs(&found, |one| (text(&one["metadata"], "name"), text(&one["status"], "phase"))))
    })
}

/// Names of the nodes of the cluster on the line.
pub fn nodes() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = scope::cluster(&api, line.flag("--cluster")).await?;
        let found = api.list_kube(&node::path(&cluster), "listing nodes").await?;
        Ok(pairs(&found, |one| (text(&one["metadata"], "name"), "")))
    })
}

/// Completes login names of users.
pub fn users() -> ArgValueCompleter {
    offer(async |api, _| offer_names(&api, &api::USER, "name").await)
}

/// Ids of role templates, because their names contain spaces.
pub fn roles() -> ArgValueCompleter {
    offer(async |api, _| offer_field(&api, api::ROLE.plural, "id", "name").await)
}

/// Completes ids of global roles, with their names.
pub fn global_roles() -> ArgValueCompleter {
    offer(async |api, _| offer_field(&api, api::GLOBAL_ROLE.plural, "id", "name").await)
}

/// Ids of the caller's tokens.
pub fn tokens() -> ArgValueCompleter {
    offer(async |api, _| offer_field(&api, "tokens", "id", "description").await)
}

/// Completes names of settings, with their values.
pub fn settings() -> ArgValueCompleter {
    offer(async |api, _| offer_field(&api, "settings", "id", "value").await)
}

/// Types that have objects.
pub fn types() -> ArgValueCompleter {
    offer(async |api, _| {
        let schemas = api.list("schemas", &[]).await?;
        let types = schemas.iter().filter_map(Type::of_schema);
        Ok(types.map(|kind| (kind.id, String::new())).collect())
    })
}

/// Names of objects of the type before them, as in `inspect TYPE NAME`.
pub fn objects() -> ArgValueCompleter {
    offer(async |api, line| {
        let Some(kind) = line.after(&["inspect", "wait"]) else { return Ok(Vec::new()) };
        let kind = Type::find(&api, kind).await?;
        let name =
            if kind.fields.contains_key(kind.name_field()) { kind.name_field() } else { "id" };
        offer_field(&api, &kind.plural, name, "state").await
    })
}

/// The completions of kubectl itself for its arguments, in the cluster on the line or the
/// context's.
pub fn kubectl() -> ArgValueCompleter {
    offer(async |_, line| {
        let (cluster, server) = (line.flag("--cluster"), line.flag("--server"));
        kubectl::completions(cluster, server, &line.kubectl_words()).await
    })
}

/// Offered words, each with its description.
type Offers = Vec<(String, String)>;

/// A completer that queries the server of the line.
fn offer<F>(query: impl Fn(Api, Line) -> F + Send + Sync + 'static) -> ArgValueCompleter
where
    F: Future<Output = Result<Offers, CliError>>,
{
    ArgValueCompleter::new(move |typed: &OsStr| {
        let line = Line::from_args();
        let Ok(api) = Api::open(line.flag("--server")) else { return Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return Vec::new() };
        let offers =
            runtime.block_on(async { tokio::time::timeout(WAIT_MAX, query(api, line)).await });
        candidates(typed, offers.ok().and_then(Result::ok).unwrap_or_default())
    })
}

async fn offer_names(api: &Api, kind: &NamedType<'_>, help: &str) -> Result<Offers, CliError> {
    let query: Vec<_> = kind.inside.into_iter().collect();
    let found = api.list(kind.plural, &query).await?;
    Ok(pairs(&found, |one| (text(one, kind.name_field), text(one, help))))
}

async fn offer_field(
    api: &Api,
    plural: &str,
    name_field: &str,
    help: &str,
) -> Result<Offers, CliError> {
    offer_names(api, &NamedType { singular: "", plural, name_field, inside: None }, help).await
}

fn pairs<'a>(found: &'a [Value], pair: impl Fn(&'a Value) -> (&'a str, &'a str)) -> Offers {
    let pairs = found.iter().map(pair);
    pairs.map(|(name, help)| (name.to_owned(), help.to_owned())).collect()
}

/// The offers that begin with the typed word, sorted.
fn candidates(
    typed: &OsStr,
    offers: impl IntoIterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let mut offers: Offers = offers.into_iter().collect();
    let is_flag = |name: &str| name.starts_with('-');
    offers.retain(|(name, _)| {
        name.starts_with(&*typed) && is_one_word(name) && is_flag(name) == is_flag(&typed)
    });
    offers.sort();
    offers.dedup_by(|one, other| one.0 == other.0);
    let candidate = |(name, help): (String, String)| {
        let help = output::harmless(&help).replace('\n', " ");
        CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into()))
    };
    offers.into_iter().take(OFFERED_MAX).map(candidate).collect()
}

/// Whether a shell reads it as one word without quotes. A name from another user must never be more
/// than one word.
fn is_one_word(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/:".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// The words of the typed line.
struct Line(Vec<String>);

impl Line {
    /// The words that the script passes after `--`.
    fn from_args() -> Self {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
        Self(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The value of a flag, in either syntax. Bash splits `=` into a word.
    fn flag(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word.starts_with(flag))?;
        let value = match self.0[at][flag.len()..].strip_prefix('=') {
            Some(value) => Some(value),
            None if self.0[at] == flag => {
                self.0[at + 1..].iter().map(String::as_str).find(|word| *word != "=")
            }
            None => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// The arguments of kubectl: all words after Drover's own flags, preceded by the command of
    /// Drover if it is also one of kubectl's.
    fn kubectl_words(&self) -> Vec<String> {
        let runs_kubectl = |word: &String| kubectl::COMMANDS.contains(&word.as_str());
        let Some(at) = self.0.iter().position(runs_kubectl) else { return Vec::new() };
        let mut rest = &self.0[at + 1..];
        while let [flag, more @ ..] = rest {
            rest = match flag.as_str() {
                "--cluster" | "--server" => more.get(1..).unwrap_or_default(),
                flag if flag.starts_with("--cluster=") || flag.starts_with("--server=") => more,
                _ => break,
            };
        }
        let own = Some(&self.0[at]).filter(|word| *word != kubectl::COMMANDS[0]);
        own.into_iter().chain(rest).cloned().collect()
    }

    /// The first word after one of the commands that is neither a flag nor the value of one. All
    /// flags of these commands have values.
    fn after(&self, commands: &[&str]) -> Option<&str> {
        let at = self.0.iter().position(|word| commands.contains(&word.as_str()))?;
        let mut words = self.0[at + 1..].iter().map(String::as_str).filter(|word| *word != "=");
        loop {
            match words.next()? {
                flag if flag.starts_with('-') && flag.contains('=') => {}
                flag if flag.starts_with('-') => drop(words.next()),
                word => return Some(word).filter(|word| !word.is_empty()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Line {
        Line(words.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_flag_is_found_in_every_syntax_that_shells_pass() {
        for words in
            ["drover ps --cluster prod x", "drover --cluster=prod", "drover --cluster = prod"]
        {
            assert_eq!(line(words).flag("--cluster"), Some("prod"), "{words}");
        }
        for words in
            ["drover ps", "drover ps --cluster", "drover ps --cluster-x a", "drover --cluster "]
        {
            assert_eq!(line(words).flag("--cluster"), None, "{words}");
        }
        for words in
            ["inspect project x", "inspect -o json project", "wait --for=deleted project x"]
        {
            assert_eq!(line(words).after(&["wait", "inspect"]), Some("project"), "{words}");
        }
        for words in ["kubectl get p", "kubectl --cluster a --server=b get p", "kubectl get p"] {
            assert_eq!(line(words).kubectl_words(), ["get", "p"], "{words}");
        }
        assert!(line("kubectl --cluster").kubectl_words().is_empty());
        assert_eq!(line("drover logs --cluster a web").kubectl_words(), ["logs", "web"]);
    }

    #[test]
    fn names_of_other_users_are_offered_only_if_they_are_one_plain_word() {
        let offers = ["prod-eu", "prod us", "prod;rm", "$(reboot)", "--force", "prod.1", "other"]
            .map(|name| (name.to_owned(), "two\nlines".to_owned()));
        let found = candidates(OsStr::new("prod"), offers);
        let names: Vec<_> = found.iter().map(|one| one.get_value().to_string_lossy()).collect();
        assert_eq!(names, ["prod-eu", "prod.1"]);
        assert!(!found[0].get_help().unwrap().to_string().contains('\n'));
    }
}
