//! What a shell offers while a word is typed: commands, flags, and names that the server knows.
//!
//! The scripts of `drover completion` run this program with the line that is typed, and
//! [`answer_shell`] answers in place of a command. Nothing is ever said on stderr, which would stand
//! in the middle of that line: who is not logged in, or whose server is slow, is offered no names.

use std::ffi::OsStr;
use std::future::Future;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use serde_json::Value;

use crate::api::{self, Api, Named, text};
use crate::args::{Format, Shell};
use crate::commands::{kubectl, namespace, node, place};
use crate::config;
use crate::error::{CliError, Failure};
use crate::output;
use crate::types::Type;

/// Names the shell for which this program completes a line; set by the scripts.
const VARIABLE: &str = "DROVER_COMPLETE";
/// A shell stands still for so long at most.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Names that are offered; who has more types a letter first.
const OFFERED_MAX: usize = 500;

/// When a shell asks, answers it and ends the process; else does nothing. To be called before
/// anything is printed and before other threads are started.
pub fn answer_shell(program: fn() -> clap::Command) {
    CompleteEnv::with_factory(program).var(VARIABLE).complete();
}

/// The script by which a shell asks the program called `name`.
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

/// Names of remembered logins.
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
        let offers = Format::OFFERED.map(pair).into_iter();
        let going_on = offers.filter(|(name, _)| name.starts_with(&*typed));
        going_on
            .map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into())))
            .collect()
    })
}

pub fn clusters() -> ArgValueCompleter {
    offer(async |api, _| named(&api, &api::CLUSTER, "state").await)
}

/// Of the cluster on the line, the context's, or all.
pub fn projects() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = place::chosen_cluster(&api, line.flag("--cluster")).await?;
        let inside = cluster.as_ref().map(|cluster| ("clusterId", api::id(cluster)));
        named(&api, &Named { inside, ..api::PROJECT }, "id").await
    })
}

/// Of the cluster on the line, or the context's.
pub fn namespaces() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = place::cluster(&api, line.flag("--cluster")).await?;
        let found = api.list_kube(&namespace::path(&cluster), "listing namespaces").await?;
        Ok(pairs(&found, |one| (text(&one["metadata"], "name"), text(&one["status"], "phase"))))
    })
}

/// Names of the nodes of the cluster on the line.
pub fn nodes() -> ArgValueCompleter {
    offer(async |api, line| {
        let cluster = place::cluster(&api, line.flag("--cluster")).await?;
        let found = api.list_kube(&node::path(&cluster), "listing nodes").await?;
        Ok(pairs(&found, |one| (text(&one["metadata"], "name"), "")))
    })
}

pub fn users() -> ArgValueCompleter {
    offer(async |api, _| named(&api, &api::USER, "name").await)
}

/// Ids of role templates: their names have blanks.
pub fn roles() -> ArgValueCompleter {
    offer(async |api, _| listed(&api, api::ROLE.plural, "id", "name").await)
}

/// Ids of the caller's tokens.
pub fn tokens() -> ArgValueCompleter {
    offer(async |api, _| listed(&api, "tokens", "id", "description").await)
}

pub fn settings() -> ArgValueCompleter {
    offer(async |api, _| listed(&api, "settings", "id", "value").await)
}

/// Types that have objects.
pub fn types() -> ArgValueCompleter {
    offer(async |api, _| {
        let schemas = api.list("schemas", &[]).await?;
        let types = schemas.iter().filter_map(Type::of_schema);
        Ok(types.map(|kind| (kind.id, String::new())).collect())
    })
}

/// Names of objects of the type that stands before them, as in `inspect TYPE NAME`.
pub fn objects() -> ArgValueCompleter {
    offer(async |api, line| {
        let Some(kind) = line.after(&["inspect", "wait"]) else { return Ok(Vec::new()) };
        let kind = Type::find(&api, kind).await?;
        let name =
            if kind.fields.contains_key(kind.name_field()) { kind.name_field() } else { "id" };
        listed(&api, &kind.plural, name, "state").await
    })
}

/// What kubectl itself offers for what it is given, in the cluster on the line or the context's.
pub fn kubectl() -> ArgValueCompleter {
    offer(async |_, line| {
        let (cluster, server) = (line.flag("--cluster"), line.flag("--server"));
        kubectl::completions(cluster, server, &line.of_kubectl()).await
    })
}

/// What is offered and what is said beside it.
type Offers = Vec<(String, String)>;

/// Asks the server of the line.
fn offer<F>(ask: impl Fn(Api, Line) -> F + Send + Sync + 'static) -> ArgValueCompleter
where
    F: Future<Output = Result<Offers, CliError>>,
{
    ArgValueCompleter::new(move |typed: &OsStr| {
        let line = Line::typed();
        let Ok(api) = Api::open(line.flag("--server")) else { return Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return Vec::new() };
        let offers =
            runtime.block_on(async { tokio::time::timeout(WAIT_MAX, ask(api, line)).await });
        candidates(typed, offers.ok().and_then(Result::ok).unwrap_or_default())
    })
}

async fn named(api: &Api, kind: &Named<'_>, help: &str) -> Result<Offers, CliError> {
    let query: Vec<_> = kind.inside.into_iter().collect();
    let found = api.list(kind.plural, &query).await?;
    Ok(pairs(&found, |one| (text(one, kind.name_field), text(one, help))))
}

async fn listed(api: &Api, plural: &str, name_field: &str, help: &str) -> Result<Offers, CliError> {
    named(api, &Named { singular: "", plural, name_field, inside: None }, help).await
}

fn pairs<'a>(found: &'a [Value], pair: impl Fn(&'a Value) -> (&'a str, &'a str)) -> Offers {
    let pairs = found.iter().map(pair);
    pairs.map(|(name, help)| (name.to_owned(), help.to_owned())).collect()
}

/// Those that go on from what is typed, in order.
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

/// Whether a shell takes it as it stands. What others named must never be more than a word.
fn is_one_word(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/:".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// The words of the line that is typed.
struct Line(Vec<String>);

impl Line {
    /// What the script hands over after `--`.
    fn typed() -> Self {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
        Self(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The value of a flag, in either form. Bash makes a word of `=`.
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

    /// What kubectl is given: all from its first word that is not for us, and before that the command
    /// of ours that is one of kubectl's.
    fn of_kubectl(&self) -> Vec<String> {
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

    /// The first word after one of the commands that is neither a flag nor the value of one. All of
    /// their flags have values.
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
    fn a_flag_is_found_in_every_form_that_shells_give() {
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
            assert_eq!(line(words).of_kubectl(), ["get", "p"], "{words}");
        }
        assert!(line("kubectl --cluster").of_kubectl().is_empty());
        assert_eq!(line("drover logs --cluster a web").of_kubectl(), ["logs", "web"]);
    }

    #[test]
    fn what_others_named_is_offered_only_where_it_is_one_plain_word() {
        let offers = ["prod-eu", "prod us", "prod;rm", "$(reboot)", "--force", "prod.1", "other"]
            .map(|name| (name.to_owned(), "two\nlines".to_owned()));
        let found = candidates(OsStr::new("prod"), offers);
        let names: Vec<_> = found.iter().map(|one| one.get_value().to_string_lossy()).collect();
        assert_eq!(names, ["prod-eu", "prod.1"]);
        assert!(!found[0].get_help().unwrap().to_string().contains('\n'));
    }
}
