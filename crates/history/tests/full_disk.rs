//! A disk that is really full: a small file system in memory, in a mount namespace of its own.

use std::process::Command;

/// Database, log and ballast.
const DISK: &str = "size=6m";
const SEEDS: u64 = 8;

#[test]
fn a_full_disk_refuses_writes_loses_nothing_and_accepts_writes_again() {
    for seed in 1..=SEEDS {
        let folder = tempfile::tempdir().expect("there is room for a test");
        let script = format!("mount -t tmpfs -o {DISK} tmpfs \"$2\" && exec \"$1\" \"$2\" \"$3\"");
        // The mount ends with the namespace, which ends with the process.
        let run = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
            .arg(env!("CARGO_BIN_EXE_history-full-disk"))
            .arg(folder.path())
            .arg(seed.to_string())
            .output()
            .expect("`unshare` of util-linux is installed");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(
            run.status.success(),
            "this test needs user namespaces and a correct storage: {said}"
        );
        println!("seed {seed}: {}", String::from_utf8_lossy(&run.stdout).trim());
    }
}
