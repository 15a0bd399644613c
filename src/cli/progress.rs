//! A progress bar in bytes, on standard error.

use hanzo_edge::registry::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar that follows a download. Draws nothing where standard error is no terminal.
pub struct Bar {
    bar: ProgressBar,
    phase: Option<Phase>,
}

impl Bar {
    /// A bar that is not shown before there is something to show.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), phase: None }
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: Progress) {
        if self.phase != Some(progress.phase) {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(progress.total.unwrap_or(0));
            let template = "{prefix} {bytes}/{total_bytes} {wide_bar} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_prefix(match progress.phase {
                Phase::Download => "downloading",
                Phase::Verify => "verifying",
            });
            self.phase = Some(progress.phase);
        }
        if let Some(total) = progress.total {
            self.bar.set_length(total);
        }
        self.bar.set_position(progress.loaded);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
