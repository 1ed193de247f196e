//! The live table on a terminal.

use std::io::{self, Stdout, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue, style};

use super::cluster::Cluster;
use super::snapshot::{Row, Snapshot};
use crate::failure::{Exit, Failure};

/// The terminal, until this is dropped.
pub(super) struct Screen(Stdout);

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    /// The index of a node.
    Node(usize),
}

impl Screen {
    pub(super) fn open() -> Result<Screen, Failure> {
        enable_raw_mode().map_err(broken)?;
        let mut screen = Screen(io::stdout());
        execute!(screen.0, EnterAlternateScreen, cursor::Hide).map_err(broken)?;
        Ok(screen)
    }

    /// A key that was pressed since the last time. Raw mode hands Ctrl-C over as a key.
    pub(super) fn key(&mut self) -> Result<Option<Key>, Failure> {
        while event::poll(Duration::ZERO).map_err(broken)? {
            let Event::Key(key) = event::read().map_err(broken)? else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Ok(Some(Key::Quit));
                }
                KeyCode::Char('1') => return Ok(Some(Key::Node(0))),
                KeyCode::Char('2') => return Ok(Some(Key::Node(1))),
                KeyCode::Char('3') => return Ok(Some(Key::Node(2))),
                _ => {}
            }
        }
        Ok(None)
    }

    pub(super) fn draw(&mut self, cluster: &Cluster, snapshot: &Snapshot) -> Result<(), Failure> {
        let out = &mut self.0;
        for (row, line) in (0u16..).zip(lines(cluster, snapshot)) {
            queue!(out, cursor::MoveTo(0, row), style::Print(line), Clear(ClearType::UntilNewLine))
                .map_err(broken)?;
        }
        queue!(out, Clear(ClearType::FromCursorDown)).map_err(broken)?;
        out.flush().map_err(broken)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = execute!(self.0, LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

fn lines(cluster: &Cluster, snapshot: &Snapshot) -> Vec<String> {
    let state = match (snapshot.leader, snapshot.leaderless) {
        (Some((leader, epoch)), _) => format!("node {leader} leads epoch {epoch}"),
        (None, Some(since)) => format!("no leader for {:.1} s", since.as_secs_f64()),
        (None, None) => "no leader".to_owned(),
    };
    let last = snapshot.last_leaderless.as_secs_f64();
    let longest = snapshot.max_leaderless.as_secs_f64();
    let mut lines = vec![
        format!("quorate dev   {}", cluster.dir().display()),
        format!("{state}   (last time without: {last:.1} s, longest: {longest:.1} s)"),
        String::new(),
        format!(
            "{:<4} {:<16} {:<12} {:>6} {:>10} {:>14} {:>6} {:>12}",
            "node", "address", "role", "epoch", "log end", "high watermark", "lag", "leaderless"
        ),
    ];
    for (node, row) in cluster.nodes.iter().zip(&snapshot.nodes) {
        lines.push(line(&node.endpoint.to_string(), row));
    }
    lines.push(String::new());
    lines.push("1, 2, 3: kill -9 that node, or start it again   q: quit".to_owned());
    lines
}

fn line(address: &str, row: &Row) -> String {
    let number = |n: Option<i64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let ended = row.ended.as_deref().map_or_else(String::new, |ended| format!("  {ended}"));
    format!(
        "{:<4} {:<16} {:<12} {:>6} {:>10} {:>14} {:>6} {:>12}{ended}",
        row.node_id,
        address,
        row.role,
        number(row.epoch.map(i64::from)),
        number(row.log_end_offset),
        number(row.high_watermark),
        number(row.lag),
        row.leaderless_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
    )
}

fn broken(error: io::Error) -> Failure {
    Failure::new(format!("the terminal does not work: {error}"))
        .exit(Exit::Refused)
        .next("run with stdout in a pipe for plain lines")
}
