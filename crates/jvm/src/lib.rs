//! What a JVM tells about itself: versions, GC and safepoint logs, native memory.
