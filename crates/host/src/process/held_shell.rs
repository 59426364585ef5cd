//! A shell for tests that observe a process. The test decides when its command begins and when it ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// A shell that waits for a line before it runs the command, and for another line before it ends.
pub(crate) fn waiting(command: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("read go; {command}; echo done; read end")]).stdin(Stdio::piped());
    shell.stdout(Stdio::piped()).spawn().unwrap()
}

/// Lets the command run, and waits for its end.
pub(crate) fn go_on(shell: &mut Child) {
    shell.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let mut said = String::new();
    BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "done\n");
}

/// Lets the shell end.
pub(crate) fn end(mut shell: Child) {
    drop(shell.stdin.take());
    shell.wait().unwrap();
}
