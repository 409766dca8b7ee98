//! The programs that images are made of, and what runtimes are told of them.

/// One program, and its image.
pub struct Program {
    /// The crate.
    pub package: &'static str,
    /// Its binary, and the file in the image.
    pub binary: &'static str,
    pub description: &'static str,
    /// Arguments of the entry point, unless others are given.
    pub arguments: &'static [&'static str],
    /// What it listens on.
    pub port: Option<u16>,
    /// Where it keeps data, without a slash at either end: the only folder that the image's user may write.
    pub data: Option<&'static str>,
}

impl Program {
    /// As the server names the agent's by default.
    pub fn image_name(&self) -> String {
        format!("{}:{}", self.binary, env!("CARGO_PKG_VERSION"))
    }
}

pub const AGENT: Program = Program {
    package: "agent",
    binary: "drover-agent",
    description: "Connects a Kubernetes cluster to a Drover server.",
    arguments: &[],
    port: None,
    data: None,
};

pub const SERVER: Program = Program {
    package: "drover",
    binary: "drover",
    description: "Manages Kubernetes clusters.",
    arguments: &["server"],
    port: Some(8443),
    data: Some("var/lib/drover"),
};
