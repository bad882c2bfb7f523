//! A real SLURM of one node, from Debian's packages, in a temporary folder: munged, slurmctld and slurmd on free ports.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything here may take before it counts as broken. It usually takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody else may take a port between its choice and its use.
const ATTEMPTS: usize = 5;

/// What every test of SLURM needs, and how to get it.
const PROGRAMS: [&str; 4] = ["munged", "slurmctld", "slurmd", "sbatch"];
const REMEDY: &str = "run `cargo xtask setup`, or `apt-get install slurm-wlm slurm-client munge`";

/// A running SLURM with one node of 16 CPUs, 2,000 MB and two GPUs, none of which need exist.
///
/// - A job that uses more memory than it asked for is killed, whole, by SLURM itself.
/// - There is no accounting database, so `sacct` tells nothing; `squeue --states=all` knows a job for some minutes after its end.
/// - Everything goes when it is dropped, the jobs first.
#[derive(Debug)]
#[must_use = "dropping it stops the cluster"]
pub struct Slurm {
    /// In the order of their start.
    daemons: Vec<Child>,
    // Last, so that the daemons are gone before their folder is.
    folder: TempDir,
}

impl Slurm {
    /// Starts the three daemons and waits for the node to be idle.
    ///
    /// # Panics
    ///
    /// If a program is missing (the message says what to install), or if a daemon does not come up (it shows the logs).
    pub fn start() -> Self {
        let missing: Vec<&str> = PROGRAMS
            .into_iter()
            .filter(|name| find(name).is_none())
            .collect();
        assert!(
            missing.is_empty(),
            "SLURM is missing here ({}): {REMEDY}",
            missing.join(", ")
        );
        let mut failures = String::new();
        for _ in 0..ATTEMPTS {
            match Self::try_start() {
                Ok(slurm) => return slurm,
                Err(failure) => failures = failure,
            }
        }
        panic!("SLURM did not come up in {ATTEMPTS} attempts: {failures}");
    }

    fn try_start() -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| format!("a temporary folder: {error}"))?;
        let mut slurm = Self {
            daemons: Vec::new(),
            folder,
        };
        slurm
            .write_files()
            .map_err(|error| format!("write the configuration: {error}"))?;

        let at = |name: &str| slurm.path(name).display().to_string();
        let munged = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            format!("--key-file={}", at("munge.key")),
            format!("--socket={}", at("munge.sock")),
            format!("--pid-file={}", at("munged.pid")),
            format!("--log-file={}", at("munged.log")),
            format!("--seed-file={}", at("munge.seed")),
        ];
        let conf = at("slurm.conf");
        slurm.daemon("munged", &munged)?;
        slurm.wait("munged's socket", |slurm| slurm.path("munge.sock").exists())?;
        slurm.daemon("slurmctld", &["-D", "-c", "-f", &conf])?;
        slurm.daemon("slurmd", &["-D", "-f", &conf, "-N", "node"])?;
        slurm.wait("an idle node", |slurm| {
            slurm.prints("sinfo", &["-h", "-o", "%T"]).as_deref() == Some("idle")
        })?;
        Ok(slurm)
    }

    fn write_files(&self) -> std::io::Result<()> {
        let here = self.folder.path().display();
        let user = prints(Command::new("id").arg("-un")).unwrap_or_else(|| "root".to_owned());
        let [controller, node] = free_ports()?;
        let host = prints(Command::new("hostname").arg("-s"))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "localhost".to_owned());
        let conf = format!(
            "\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={here}/munge.sock
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/slurmd.log
MailProg=/bin/true
# Finds all of a job's processes even when their parents went first; that of linuxproc does not.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
# Memory is looked at every second, and whoever takes more than asked for is killed.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=50
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
GresTypes=gpu
SchedulerType=sched/backfill
# A job waits for half a second at most where the node is free.
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
KillWait=2
MessageTimeout=10
# The node has more CPUs than the machine may have.
SlurmdParameters=config_overrides
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=node Default=YES MaxTime=INFINITE State=UP
"
        );
        for folder in ["state", "spool"] {
            fs::create_dir(self.path(folder))?;
        }
        fs::write(self.path("slurm.conf"), conf)?;
        // Any character devices serve as GPUs that nobody opens.
        fs::write(
            self.path("gres.conf"),
            "NodeName=node Name=gpu File=/dev/null\nNodeName=node Name=gpu File=/dev/zero\n",
        )?;
        let mut key = [0; 1024];
        fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        fs::write(self.path("munge.key"), key)?;
        fs::set_permissions(self.path("munge.key"), fs::Permissions::from_mode(0o400))
    }

    fn daemon(&mut self, name: &str, args: &[impl AsRef<std::ffi::OsStr>]) -> Result<(), String> {
        let program = find(name).ok_or_else(|| format!("{name} is missing: {REMEDY}"))?;
        let said = fs::File::create(self.path(&format!("{name}.out")))
            .map_err(|error| format!("a log for {name}: {error}"))?;
        let child = Command::new(program)
            .args(args)
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(|error| format!("start {name}: {error}"))?;
        self.daemons.push(child);
        Ok(())
    }

    /// Waits until `holds`, unless a daemon ends or patience does.
    fn wait(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let ended = self
                .daemons
                .iter_mut()
                .any(|daemon| !matches!(daemon.try_wait(), Ok(None)));
            if ended || Instant::now() > deadline {
                let why = if ended {
                    "a daemon has ended"
                } else {
                    "it took too long"
                };
                return Err(format!("no {what}: {why}\n{}", self.logs()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The ends of the daemons' logs.
    fn logs(&self) -> String {
        let mut logs = String::new();
        for name in ["munged", "slurmctld", "slurmd"] {
            for suffix in ["out", "log"] {
                let text = fs::read_to_string(self.path(&format!("{name}.{suffix}")));
                let text = text.unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let end = lines[lines.len().saturating_sub(20)..].join("\n");
                let _ = writeln!(logs, "-- {name}.{suffix}\n{end}");
            }
        }
        logs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that `SLURM_CONF` has to name for a program to talk to this cluster.
    pub fn conf(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// A command that talks to this cluster, and has heard of no other.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let shown = name.to_string_lossy();
            if ["SLURM", "SBATCH", "SQUEUE", "SRUN"]
                .iter()
                .any(|prefix| shown.starts_with(prefix))
            {
                command.env_remove(&name);
            }
        }
        command.env("SLURM_CONF", self.conf());
        command
    }

    /// Waits until no job waits or runs.
    ///
    /// # Panics
    ///
    /// If that takes more than a minute and a half; the message shows the queue and the logs.
    pub fn wait_for_jobs(&self) {
        let deadline = Instant::now() + PATIENCE * 3 / 2;
        loop {
            let queue = self.prints("squeue", &["-h"]);
            if queue.as_deref() == Some("") {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "jobs did not end: {queue:?}\n{}",
                self.logs()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the controller and keeps the rest, so that nothing answers any more.
    ///
    /// # Panics
    ///
    /// If it cannot be stopped.
    pub fn stop_controller(&mut self) {
        // munged, slurmctld, slurmd.
        let mut controller = self.daemons.remove(1);
        controller.kill().expect("the controller can be killed");
        controller.wait().expect("the controller ends");
        let conf = fs::read_to_string(self.conf()).expect("the configuration is there");
        // Programs try again for half of this time.
        let conf = conf.replace("MessageTimeout=10", "MessageTimeout=2");
        fs::write(self.conf(), conf).expect("the configuration can be written");
    }

    fn prints(&self, program: &str, args: &[&str]) -> Option<String> {
        prints(self.command(program).args(args))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Jobs are no children of ours: SLURM has to end them. A controller that is gone has none to wait for.
        if self.daemons.len() == 3
            && self
                .prints("squeue", &["-h"])
                .is_some_and(|jobs| !jobs.is_empty())
        {
            let user = prints(Command::new("id").arg("-un")).unwrap_or_default();
            self.prints("scancel", &["--user", &user]);
            let deadline = Instant::now() + PATIENCE / 3;
            while self
                .prints("squeue", &["-h"])
                .is_some_and(|jobs| !jobs.is_empty())
                && Instant::now() < deadline
            {
                thread::sleep(Duration::from_millis(50));
            }
        }
        for mut daemon in self.daemons.drain(..).rev() {
            // They may have ended by themselves; there is nobody to tell.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// What a program prints on stdout, or `None` where it is missing or fails.
fn prints(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Two ports that are free now.
fn free_ports() -> std::io::Result<[u16; 2]> {
    let listen = || TcpListener::bind(("127.0.0.1", 0));
    // Both at once, so that they differ.
    let (one, two) = (listen()?, listen()?);
    Ok([one.local_addr()?.port(), two.local_addr()?.port()])
}

/// Where a program lies, daemons included, which are not on every user's PATH.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([Path::new("/usr/sbin").to_path_buf()])
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_runs_and_nothing_is_left_behind() {
        let slurm = Slurm::start();
        let folder = slurm.folder.path().to_path_buf();
        let out = slurm.path("job.out");
        let submit = |body: &str, out: &Path| {
            let output = slurm
                .command("sbatch")
                .args(["--parsable", "--chdir=/", "--gpus=1"])
                .arg(format!("--output={}", out.display()))
                .arg(format!("--wrap={body}"))
                .output()
                .expect("sbatch runs");
            assert!(output.status.success(), "{output:?}");
        };
        submit("echo ran in $SLURM_JOB_ID", &out);
        slurm.wait_for_jobs();
        assert_eq!(fs::read_to_string(&out).ok().as_deref(), Some("ran in 1\n"));

        // One that would run on for an hour.
        let pid = slurm.path("pid");
        submit(
            &format!("echo $$ > {}; exec sleep 3600", pid.display()),
            Path::new("/dev/null"),
        );
        let deadline = Instant::now() + PATIENCE;
        let process = loop {
            let text = fs::read_to_string(&pid).unwrap_or_default();
            if let Ok(pid) = text.trim().parse::<u32>() {
                break PathBuf::from(format!("/proc/{pid}"));
            }
            assert!(Instant::now() < deadline, "the job does not start");
            thread::sleep(Duration::from_millis(20));
        };
        assert!(process.exists());
        let daemons: Vec<u32> = slurm.daemons.iter().map(Child::id).collect();
        drop(slurm);
        assert!(!process.exists(), "the job outlived its cluster");
        assert!(!folder.exists());
        for pid in daemons {
            assert!(!Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
