//! The programs of images, and their metadata for runtimes.

/// One program, and its image.
pub struct ImageProgram {
    /// The crate.
    pub package: &'static str,
    /// Its binary, and the file in the image.
    pub binary: &'static str,
    pub description: &'static str,
    /// Of all that is in the image, as an SPDX expression.
    pub licenses: &'static str,
    /// Arguments of the entry point, unless others are given.
    pub arguments: &'static [&'static str],
    /// The port that it listens on.
    pub port: Option<u16>,
    /// Its data folder, without leading or trailing slash: the only folder that the image's user
    /// may write.
    pub data: Option<&'static str>,
}

impl ImageProgram {
    /// The default name of the image.
    pub fn image_name(&self) -> String {
        format!("{}:{}", self.binary, env!("CARGO_PKG_VERSION"))
    }
}

pub const AGENT: ImageProgram = ImageProgram {
    package: "agent",
    binary: "drover-agent",
    description: "Connects a Kubernetes cluster to a Drover server.",
    licenses: "Apache-2.0",
    arguments: &[],
    port: None,
    data: None,
};

pub const SERVER: ImageProgram = ImageProgram {
    package: "drover",
    binary: "drover",
    description: "Manages Kubernetes clusters.",
    licenses: "Apache-2.0",
    arguments: &["server"],
    port: Some(8443),
    data: Some("var/lib/drover"),
};
