import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Slow allocations and the count of all, once a second, in the file that LOADLINE_PAUSES names:
 * loadline joins them with the GC log and the cgroup's counters. Without the variable it does
 * nothing. Format: ../hiccup/README.md.
 */
final class PauseFile implements Runnable {
    private static final long EVERY_MILLIS = 1000;

    private static PauseFile current;

    private final BufferedWriter out;
    private final List<Allocator> allocators;
    private final int[] written;

    private PauseFile(BufferedWriter out, List<Allocator> allocators) {
        this.out = out;
        this.allocators = allocators;
        this.written = new int[allocators.size()];
    }

    static void begin(List<Allocator> allocators) throws IOException {
        String file = System.getenv("LOADLINE_PAUSES");
        if (file == null) {
            return;
        }
        BufferedWriter out = Files.newBufferedWriter(Path.of(file));
        out.write("source allocation\n");
        current = new PauseFile(out, allocators);
        Thread thread = new Thread(current, "pause-file");
        thread.setDaemon(true);
        thread.start();
    }

    /** Writes what is left. */
    static void end() {
        if (current != null) {
            current.write();
            current.writeLost();
        }
    }

    @Override
    public void run() {
        try {
            while (true) {
                write();
                Thread.sleep(EVERY_MILLIS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void write() {
        long done = 0;
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < written.length; i++) {
            Latencies latencies = allocators.get(i).latencies();
            done += latencies.total();
            for (int events = latencies.events(); written[i] < events; written[i]++) {
                lines.append("pause ").append(latencies.start(written[i]));
                lines.append(' ').append(latencies.end(written[i])).append('\n');
            }
        }
        lines.append("done ").append(System.nanoTime()).append(' ').append(done).append('\n');
        put(lines);
    }

    private synchronized void writeLost() {
        long lost = allocators.stream().mapToLong(allocator -> allocator.latencies().lost()).sum();
        put("lost " + lost + "\n");
    }

    private void put(CharSequence lines) {
        try {
            out.append(lines);
            out.flush();
        } catch (IOException e) {
            System.err.println("allocation: the file of pauses: " + e);
        }
    }
}
