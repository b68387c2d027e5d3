/** Asks for collections and prints when each was, on System.nanoTime: begin and end, ns. */
public class Collect {
    static byte[][] kept = new byte[64][];

    public static void main(String[] arguments) throws InterruptedException {
        for (int turn = 0; turn < 20; turn++) {
            for (int i = 0; i < 2000; i++) {
                kept[i % kept.length] = new byte[10_000];
            }
            long begin = System.nanoTime();
            System.gc();
            System.out.println(begin + " " + System.nanoTime());
            Thread.sleep(37);
        }
    }
}
