//! Progress of a start: a spinner on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Displays progress. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    began: Arc<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self { bar, began: Arc::new(Instant::now()) }
    }

    /// Displays the step that begins.
    #[expect(clippy::print_stderr, reason = "progress goes to standard error")]
    pub(crate) fn step(&self, text: impl std::fmt::Display) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_string()),
            None => eprintln!("[{:5.1} s] {text}", self.began.elapsed().as_secs_f64()),
        }
    }

    /// Ends the display.
    pub(crate) fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Returns a progress callback for the stores.
    pub(crate) fn for_sandbox(&self) -> sandbox::progress::Progress {
        let this = self.clone();
        sandbox::progress::Progress::new(move |step| this.step(step))
    }
}
