//! Why a reconcile did not get through: what was attempted, and the cause.

/// A failure that another try may cure. What only a change of spec cures is
/// [`crate::Outcome::Terminal`], not an error.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A call to a Kubernetes API failed.
    #[error("could not {attempt}")]
    Api {
        /// Verb and object, as in `create namespace "c-x"`.
        attempt: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// Anything else.
    #[error("could not {attempt}: {cause}")]
    Other { attempt: String, cause: String },
}

impl ReconcileError {
    pub fn other(attempt: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::Other { attempt: attempt.into(), cause: cause.to_string() }
    }
    /// The whole chain in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// Says what was being attempted when a call failed.
pub trait Attempt<T> {
    /// # Errors
    /// The failure, with `attempt` (verb and object) in front.
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T, ReconcileError>;
}

impl<T> Attempt<T> for Result<T, kube::Error> {
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T, ReconcileError> {
        self.map_err(|source| ReconcileError::Api { attempt: attempt(), source: Box::new(source) })
    }
}

/// Whether the API answered with this HTTP code.
pub fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
