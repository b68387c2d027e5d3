import java.util.concurrent.ArrayBlockingQueue;

/**
 * One thread that makes strings and keeps the last ones, so that some die young and some live
 * long. The object, its size and the queue are those of the study.
 */
final class Allocator extends Thread {
    private static final int CHARACTERS = 102;

    private final ArrayBlockingQueue<String> kept;
    private final int release;
    private final Latencies latencies;
    private volatile boolean isFinished;

    /** Keeps up to {@code threshold} objects and then drops {@code release} per cent of them. */
    Allocator(int number, int threshold, int release, long overNanos) {
        super("allocator-" + number);
        setDaemon(true);
        this.kept = new ArrayBlockingQueue<>(threshold);
        this.release = Math.max(1, (int) (threshold * (long) release / 100));
        this.latencies = new Latencies(overNanos);
    }

    @Override
    public void run() {
        long before = System.nanoTime();
        while (!isFinished) {
            String text = new String(new char[CHARACTERS]).replace('\0', 'x');
            boolean isKept = kept.offer(text);
            long after = System.nanoTime();
            latencies.record(before, after);
            before = after;
            if (!isKept) {
                drop();
                before = System.nanoTime(); // dropping is no allocation
            }
        }
    }

    private void drop() {
        for (int i = 0; i < release; i++) {
            kept.poll();
        }
    }

    /** Stops it; after a second it is left alone. */
    void end() {
        isFinished = true;
        try {
            join(1000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    Latencies latencies() {
        return latencies;
    }
}
