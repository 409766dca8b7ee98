//! Why a reconcile failed: what was attempted, and the cause.

/// A failure that a retry may cure. A failure that only a change of the spec cures is
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
    /// A failure that did not come from a Kubernetes API.
    #[error("could not {attempt}: {cause}")]
    Other { attempt: String, cause: String },
}

impl ReconcileError {
    /// An [`ReconcileError::Other`]. `attempt` is a verb and an object, as in `read secret "x"`.
    pub fn other(attempt: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::Other { attempt: attempt.into(), cause: cause.to_string() }
    }
    /// The error and all its sources in one line, separated by `: `.
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

/// Adds to a failed call of a Kubernetes API what was attempted.
pub trait Attempt<T> {
    /// Maps the error to [`ReconcileError::Api`]. `attempt` (verb and object, as in
    /// `create namespace "c-x"`) runs only on failure.
    ///
    /// # Errors
    /// The call failed.
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T, ReconcileError>;
}

impl<T> Attempt<T> for Result<T, kube::Error> {
    fn attempt(self, attempt: impl FnOnce() -> String) -> Result<T, ReconcileError> {
        self.map_err(|source| ReconcileError::Api { attempt: attempt(), source: Box::new(source) })
    }
}

/// An error of a request in the words of the API, without the details that its own text repeats.
pub fn words_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether the API responded with a `Status` of this HTTP code. False for failures of the
/// connection.
pub fn is_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
