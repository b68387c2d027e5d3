import java.util.Arrays;

/**
 * Durations of one thread: a histogram of all, and each that was over the limit as [start, end].
 * Allocates nothing while it records.
 *
 * Only the recording thread writes. Others read without a lock, so what they see of a running
 * thread may lack its last records.
 */
final class Latencies {
    /** Buckets to a doubling: a bucket is at most 1/16 wide. */
    private static final int STEPS = 16;

    /** Room for this many events; later ones are only counted. */
    private static final int EVENTS = 200_000;

    private final long overNanos;
    private final long[] counts = new long[64 * STEPS];
    private final long[] starts = new long[EVENTS];
    private final long[] ends = new long[EVENTS];
    private volatile int events;
    private volatile long lost;
    private long total;

    Latencies(long overNanos) {
        this.overNanos = overNanos;
        // Touched now, so that no page fault of theirs shows up as a slow allocation.
        Arrays.fill(starts, 1);
        Arrays.fill(ends, 1);
    }

    void record(long start, long end) {
        long nanos = Math.max(0, end - start);
        counts[bucket(nanos)]++;
        total++;
        if (nanos <= overNanos) {
            return;
        }
        if (events == EVENTS) {
            lost = lost + 1;
            return;
        }
        starts[events] = start;
        ends[events] = end;
        events = events + 1; // last: whoever sees the count sees the times
    }

    /** Allocations so far. */
    long total() {
        return total;
    }

    /** Slow allocations so far; their times are in place. */
    int events() {
        return events;
    }

    /** Slow allocations that found no room. */
    long lost() {
        return lost;
    }

    long start(int event) {
        return starts[event];
    }

    long end(int event) {
        return ends[event];
    }

    /** Values below 16 have a bucket each; above, 16 buckets to a doubling. */
    private static int bucket(long nanos) {
        if (nanos < STEPS) {
            return (int) nanos;
        }
        int shift = 63 - Long.numberOfLeadingZeros(nanos) - 4;
        return STEPS * (shift + 1) + (int) (nanos >>> shift) - STEPS;
    }

    /** The smallest value of a bucket. */
    private static long lowest(int bucket) {
        int doubling = bucket / STEPS;
        return doubling == 0 ? bucket : (long) (STEPS + bucket % STEPS) << (doubling - 1);
    }

    /** Adds itself as a JSON object. */
    void write(StringBuilder json) {
        json.append("{\"allocations\":").append(total);
        json.append(",\"over_ns\":").append(overNanos);
        json.append(",\"events_lost\":").append(lost).append(",\"histogram\":[");
        String comma = "";
        for (int i = 0; i < counts.length; i++) {
            if (counts[i] > 0) {
                json.append(comma).append('[').append(lowest(i)).append(',').append(counts[i]).append(']');
                comma = ",";
            }
        }
        json.append("],\"events\":[");
        comma = "";
        for (int i = 0; i < events; i++) {
            json.append(comma).append('[').append(starts[i]).append(',').append(ends[i]).append(']');
            comma = ",";
        }
        json.append("]}");
    }
}
