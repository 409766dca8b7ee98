//! A command in a simulated container, from its start to its exit code. Nothing is executed.

use jiff::Timestamp;

use super::console::{Console, Disconnected, Line};
use super::container::Container;
use super::logs::{Alive, Log};
use super::shell::syntax::{Joint, ShellCommand};
use super::shell::{BANNER, CommandOutput, ContainerProgram, Shell, Then};

const PROMPT: &str = "/ # ";

/// Runs `program`; returns its exit code.
///
/// # Errors
/// The client has disconnected.
pub async fn run(
    container: &Container,
    program: ContainerProgram,
    console: &mut Console,
) -> Result<u8, Disconnected> {
    let mut shell = Shell::new(container);
    match program {
        ContainerProgram::Command(words) => {
            let ran = shell.run_words(&words, Timestamp::now());
            finish(&ran, console).await?;
            Ok(ran.code)
        }
        ContainerProgram::Script(script) => {
            run_script(&mut shell, &script, console).await?;
            Ok(shell.last_code())
        }
        ContainerProgram::Shell => interact(&mut shell, console).await,
    }
}

/// Attaches to the first process: shows its output, or a shell if the process reads its input.
///
/// # Errors
/// The client has disconnected.
pub async fn attach(
    container: &Container,
    mut log: Log,
    console: &mut Console,
    alive: &mut Alive,
) -> Result<u8, Disconnected> {
    if container.stdin && console.has_input() {
        return run(container, ContainerProgram::Shell, console).await;
    }
    loop {
        let line = tokio::select! {
            line = log.next_line() => line,
            () = console.discard_input() => None,
            () = alive.wait_until_ended() => None,
        };
        let Some(line) = line else { return Ok(0) };
        console.write(&format!("{}\n", line.text)).await?;
    }
}

async fn interact(shell: &mut Shell<'_>, console: &mut Console) -> Result<u8, Disconnected> {
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
) -> Result<Then, Disconnected> {
    let commands: Vec<(Joint, ShellCommand)> = match shell.parse(script) {
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

async fn finish(ran: &CommandOutput, console: &mut Console) -> Result<(), Disconnected> {
    console.write(&ran.output).await?;
    console.write_errors(&ran.errors).await?;
    if ran.then == Then::CopyInput {
        console.copy_input().await?;
    }
    Ok(())
}
