import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/**
 * An agent that writes down when a JVM stood still: a thread that sleeps a millisecond at a time
 * and notes each sleep that took much longer. It stands whenever the application's threads stand,
 * for a collection, a safepoint or CPU throttling. As a program of its own, in the cgroup of an
 * application that is no JVM, it stands whenever the cgroup is throttled.
 *
 * Format and clock: loadline's file of pauses (README.md).
 */
public final class Hiccup implements Runnable {
    private static final long SLEEP = 1_000_000;
    private static final long FLUSH = 1_000_000_000;

    private final BufferedWriter out;
    private final long overNanos;

    private Hiccup(BufferedWriter out, long overNanos) {
        this.out = out;
        this.overNanos = overNanos;
    }

    /** {@code -javaagent:hiccup.jar[=over=MILLIS,file=PATH]}. */
    public static void premain(String argument, Instrumentation unused) throws IOException {
        Hiccup hiccup = open(argument, "hiccup");
        if (hiccup == null) {
            return;
        }
        Thread thread = new Thread(hiccup, "hiccup");
        thread.setDaemon(true);
        thread.setPriority(Thread.MAX_PRIORITY);
        thread.start();
    }

    /** {@code java -jar hiccup.jar [over=MILLIS,file=PATH]}: a canary beside an application. */
    public static void main(String[] arguments) throws IOException {
        Hiccup hiccup = open(String.join(",", arguments), "canary");
        if (hiccup == null) {
            System.exit(2);
        }
        hiccup.run();
    }

    /** The recorder that the options ask for; null, and a line that says why, without a file. */
    private static Hiccup open(String argument, String source) throws IOException {
        String file = System.getenv("LOADLINE_PAUSES");
        long over = 5;
        for (String part : argument == null || argument.isEmpty() ? new String[0] : argument.split(",")) {
            if (part.startsWith("file=")) {
                file = part.substring(5);
            } else if (part.matches("over=\\d{1,6}")) {
                over = Long.parseLong(part.substring(5));
            } else {
                System.err.println("hiccup: not an option: " + part + " (over=MILLIS, file=PATH)");
            }
        }
        if (file == null) {
            System.err.println("hiccup: no file: set LOADLINE_PAUSES or give file=PATH; nothing is recorded");
            return null;
        }
        BufferedWriter out = Files.newBufferedWriter(Path.of(file));
        out.write("source " + source + "\n");
        return new Hiccup(out, over * 1_000_000);
    }

    @Override
    public void run() {
        try {
            long flushed = System.nanoTime();
            long before = flushed;
            while (true) {
                LockSupport.parkNanos(SLEEP);
                long now = System.nanoTime();
                if (now - before > SLEEP + overNanos) {
                    out.write("pause " + (before + SLEEP) + " " + now + "\n");
                }
                if (now - flushed > FLUSH) {
                    out.flush();
                    flushed = now;
                }
                before = System.nanoTime(); // writing is no pause
            }
        } catch (IOException e) {
            System.err.println("hiccup: " + e + "; recording ends");
        }
    }
}
