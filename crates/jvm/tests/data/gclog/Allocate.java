import java.util.ArrayDeque;
/** Allocates on two threads, keeps a bounded live set, sometimes a humongous array, System.gc() once. */
public class Allocate {
    public static void main(String[] a) throws Exception {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000L;
        int live = Integer.parseInt(a[1]);
        int pause = a.length > 2 ? Integer.parseInt(a[2]) : 0;
        Runnable r = () -> {
            ArrayDeque<byte[]> keep = new ArrayDeque<>(); long bytes = 0; int n = 0;
            while (System.nanoTime() < end) {
                byte[] b = new byte[(n % 2000 == 1999) ? 1_500_000 : 1000 + (n % 7) * 500]; n++;
                if (n % 3 == 0) { keep.add(b); bytes += b.length; while (bytes > live * 500_000L) bytes -= keep.poll().length; }
                if (pause > 0 && n % 1000 == 0) try { Thread.sleep(pause); } catch (InterruptedException e) { }
            }
        };
        Thread t = new Thread(r, "alloc-0"), u = new Thread(r, "alloc-1");
        t.start(); u.start();
        Thread.sleep(Long.parseLong(a[0]) / 2); System.gc();
        t.join(); u.join();
    }
}
