//! A command in a simulated container, from its start to its exit code. Nothing is executed.

use jiff::Timestamp;

use super::console::{Console, Left, Line};
use super::container::Container;
use super::logs::{Alive, Log};
use super::shell::syntax::{Command, Joint};
use super::shell::{BANNER, Program, Ran, Shell, Then};

const PROMPT: &str = "/ # ";

/// Runs `program`; its exit code.
///
/// # Errors
/// The client has left.
pub async fn run(
    container: &Container,
    program: Program,
    console: &mut Console,
) -> Result<u8, Left> {
    let mut shell = Shell::new(container);
    match program {
        Program::Command(words) => {
            let ran = shell.run_words(&words, Timestamp::now());
            finish(&ran, console).await?;
            Ok(ran.code)
        }
        Program::Script(script) => {
            run_script(&mut shell, &script, console).await?;
            Ok(shell.last_code())
        }
        Program::Shell => interact(&mut shell, console).await,
    }
}

/// What its first process writes, and a shell where that reads what is typed.
///
/// # Errors
/// The client has left.
pub async fn attach(
    container: &Container,
    mut log: Log,
    console: &mut Console,
    alive: &mut Alive,
) -> Result<u8, Left> {
    if container.stdin && console.has_input() {
        return run(container, Program::Shell, console).await;
    }
    loop {
        let line = tokio::select! {
            line = log.next_line() => line,
            () = console.discard_input() => None,
            () = alive.ended() => None,
        };
        let Some(line) = line else { return Ok(0) };
        console.write(&format!("{}\n", line.text)).await?;
    }
}

async fn interact(shell: &mut Shell<'_>, console: &mut Console) -> Result<u8, Left> {
    if console.is_terminal() {
        console.write(BANNER).await?;
    }
    loop {
        if console.is_terminal() {
            console.write(PROMPT).await?;
        }
        let line = match console.read_line().await? {
            Line::Text(line) => line,
            Line::Interrupt => continue,
            Line::End => return Ok(shell.last_code()),
        };
        if run_script(shell, &line, console).await? == Then::Exit {
            return Ok(shell.last_code());
        }
    }
}

async fn run_script(
    shell: &mut Shell<'_>,
    script: &str,
    console: &mut Console,
) -> Result<Then, Left> {
    let commands: Vec<(Joint, Command)> = match shell.parse(script) {
        Ok(commands) => commands,
        Err(refused) => {
            finish(&refused, console).await?;
            return Ok(Then::Next);
        }
    };
    for (joint, command) in commands {
        if !shell.runs(joint) {
            continue;
        }
        let ran = shell.run(&command, Timestamp::now());
        finish(&ran, console).await?;
        if ran.then == Then::Exit {
            return Ok(Then::Exit);
        }
    }
    Ok(Then::Next)
}

async fn finish(ran: &Ran, console: &mut Console) -> Result<(), Left> {
    console.write(&ran.output).await?;
    console.write_errors(&ran.errors).await?;
    if ran.then == Then::CopyInput {
        console.copy_input().await?;
    }
    Ok(())
}
