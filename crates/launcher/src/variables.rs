//! Every environment variable the launcher reads, in one table.
//!
//! The reference (`docs/reference/launcher.md`) is generated from it, and a test compares them.

use std::fmt::Write as _;

pub struct LauncherVariable {
    pub name: &'static str,
    pub values: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}

const fn variable_row(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> LauncherVariable {
    LauncherVariable {
        name,
        values,
        default,
        meaning,
    }
}

pub const TABLE: &[LauncherVariable] = &[
    variable_row(
        "LOADLINE_MODE",
        "`apply`, `report`, `off`",
        "`apply`",
        "`report` says what it would add and adds nothing; `off` adds nothing",
    ),
    variable_row(
        "LOADLINE_EXPLAIN",
        "`1`",
        "off",
        "print limits, decisions and reasons to stderr before the start",
    ),
    variable_row(
        "LOADLINE_LOG",
        "`text`, `json`, `quiet`",
        "`text`",
        "`text` prints warnings; `json` prints one JSON line with limits, decisions and reasons; `quiet` prints only why a start failed or was refused",
    ),
    variable_row(
        "LOADLINE_STRICT",
        "`1`",
        "off",
        "refuse to start (exit 78) when the limit is too small, or when limits, options, the profile or a setting cannot be read or understood",
    ),
    variable_row(
        "LOADLINE_INIT",
        "`auto`, `always`, `never`",
        "`auto`",
        "act as init: reap orphans, forward signals; `auto` does so as PID 1",
    ),
    variable_row(
        "LOADLINE_SIGNAL_GROUP",
        "`1`",
        "off",
        "as init, pass signals on to every process of the application's group, as tini's `-g` does",
    ),
    variable_row(
        "LOADLINE_PARENT_DEATH",
        "`TERM`, `INT`, `HUP`, `QUIT`, `KILL`",
        "none",
        "as init, the signal that this process gets, and passes on, when its parent dies, as tini's `-p` has it; the application is killed in any case when this process is",
    ),
    variable_row(
        "LOADLINE_EXIT_ZERO",
        "exit codes, such as `143`",
        "none",
        "as init, end with 0 when the application ends with one of these",
    ),
    variable_row(
        "LOADLINE_PROFILE",
        "a file",
        "`loadline.profile` next to the application, then `/etc/loadline/profile`",
        "the measured profile of the application",
    ),
    variable_row(
        "LOADLINE_MEMORY",
        "`512Mi`",
        "the cgroup limit",
        "plan for this much memory instead, whatever `memory.high` says",
    ),
    variable_row(
        "LOADLINE_CPUS",
        "`1.5`, `250m`",
        "the CFS quota",
        "plan for this much CPU instead",
    ),
    variable_row(
        "LOADLINE_JAVA",
        "a file",
        "`$JAVA_HOME/bin/java`, then `PATH`",
        "the java to start",
    ),
    variable_row(
        "LOADLINE_APP_DIR",
        "a directory",
        "`JAVA_APP_DIR`, `/app`, `/deployments`, the working directory",
        "where to find the application when no command is given",
    ),
    variable_row(
        "LOADLINE_COMPAT",
        "`paketo`, `cf`, `fabric8`",
        "none",
        "reproduce another launcher's memory options instead",
    ),
    variable_row(
        "LOADLINE_CACHE",
        "`auto`, `off`",
        "`auto`",
        "use a start-up cache that lies next to the jar of `-jar`: `app.aot` or `app.jsa`, for OpenJ9 a directory `scc`",
    ),
    variable_row(
        "LOADLINE_EXIT_ON_OOM",
        "`on`, `off`",
        "`on`",
        "end the JVM at the first OutOfMemoryError",
    ),
    variable_row(
        "LOADLINE_GC_LOG",
        "a file",
        "off",
        "write the GC and safepoint log there, 5 files of 20 MB",
    ),
    variable_row(
        "LOADLINE_NMT",
        "`summary`, `detail`",
        "off",
        "switch native memory tracking on",
    ),
    variable_row(
        "LOADLINE_HEAP_DUMP",
        "a directory",
        "off",
        "dump the heap there at an OutOfMemoryError, when the heap fits into its free space",
    ),
    variable_row(
        "LOADLINE_JFR",
        "a file",
        "off",
        "record a flight recording, written at exit",
    ),
    variable_row(
        "LOADLINE_DEBUG",
        "`[host:]port`",
        "off",
        "accept a debugger; only from this host unless a host is given",
    ),
    variable_row(
        "LOADLINE_DEBUG_SUSPEND",
        "`1`",
        "off",
        "wait for the debugger before main",
    ),
    variable_row(
        "LOADLINE_JMX",
        "a port",
        "off",
        "accept JMX on localhost, without password",
    ),
    variable_row(
        "JAVA_OPTS, JAVA_OPTIONS",
        "options",
        "none",
        "added before the options of the command line, in every mode; quotes group, no shell reads them; under the name `java` not added, because a start script does",
    ),
    variable_row(
        "JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, _JAVA_OPTIONS",
        "options",
        "none",
        "read by the JVM itself; here they freeze what they set",
    ),
    variable_row(
        "OPENJ9_JAVA_OPTIONS",
        "options",
        "none",
        "the same for OpenJ9",
    ),
    variable_row("JAVA_HOME", "a directory", "none", "where java is"),
    variable_row(
        "JAVA_APP_DIR, JAVA_APP_JAR, JAVA_MAIN_CLASS, JAVA_CLASSPATH",
        "names",
        "none",
        "the application, by the names of run-java.sh, when no command is given",
    ),
    variable_row(
        "JAVA_MAX_MEM_RATIO, JAVA_INIT_MEM_RATIO",
        "percent",
        "none",
        "with `fabric8` compatibility",
    ),
    variable_row(
        "BPL_JVM_LOADED_CLASS_COUNT, BPL_JVM_THREAD_COUNT, BPL_JVM_HEAD_ROOM",
        "numbers",
        "classes of the profile, 250, 0",
        "with `paketo` and `cf` compatibility",
    ),
    variable_row(
        "MALLOC_ARENA_MAX",
        "a number",
        "`2` where memory is limited",
        "glibc's arenas; set for the application unless it is set already",
    ),
];

pub fn reference() -> String {
    let mut page = String::from(
        "# loadline-launch: environment variables\n\n\
         Which environment variables `loadline-launch` reads.\n\n\
         Generated from the table in `crates/launcher/src/variables.rs`; a test keeps them equal.\n\n\
         | variable | values | default | meaning |\n|---|---|---|---|\n",
    );
    for v in TABLE {
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            v.name, v.values, v.default, v.meaning
        );
    }
    page
}
