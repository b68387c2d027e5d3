import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.Deflater;

/** A service that loses a known amount of memory a request, in one part of the JVM. */
public final class Leak {
    private static final String USAGE = """
            usage: java -jar leak.jar [--option=value ...]
              --port=8080       port to listen on, all interfaces
              --heap=0          bytes a request that stay in the heap
              --direct=0        bytes a request that stay in direct buffers
              --malloc-every=0  every so many requests a Deflater that is never ended: 262144 bytes and some of malloc
              --thread-every=0  every so many requests a thread that never ends
              --garbage-kb=16   garbage a request, KiB""";

    /** More than the window and the tables of a Deflater hold, so that all of them are touched. */
    private static final byte[] NOISE = new byte[256 * 1024];

    private static final ConcurrentLinkedQueue<Object> KEPT = new ConcurrentLinkedQueue<>();
    private static final AtomicLong REQUESTS = new AtomicLong();
    private static final CountDownLatch NEVER = new CountDownLatch(1);

    private Leak() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Integer> options = options(arguments);
        new Random(1).nextBytes(NOISE);
        // Without it JDK 17 and 21 answer no faster than delayed ACKs allow.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress(options.get("port")), 1024);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            lose(options, REQUESTS.incrementAndGet());
            answer(exchange);
        });
        server.start();
        System.out.println("leak is ready on port " + options.get("port"));
    }

    private static void lose(Map<String, Integer> options, long request) {
        for (int i = 0; i < options.get("garbage-kb"); i++) {
            sink = new byte[1024];
        }
        if (options.get("heap") > 0) {
            KEPT.add(new byte[options.get("heap")]);
        }
        if (options.get("direct") > 0) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(options.get("direct"));
            KEPT.add(buffer);
        }
        if (is(options.get("malloc-every"), request)) {
            Deflater deflater = new Deflater();
            deflater.setInput(NOISE);
            byte[] out = new byte[64 * 1024];
            while (!deflater.needsInput()) {
                deflater.deflate(out);
            }
            KEPT.add(deflater);
        }
        if (is(options.get("thread-every"), request)) {
            Thread thread = new Thread(Leak::stay, "lost-" + request);
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static boolean is(int every, long request) {
        return every > 0 && request % every == 0;
    }

    private static void stay() {
        try {
            NEVER.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** What the optimiser must believe in. */
    private static volatile byte[] sink;

    private static void answer(HttpExchange exchange) throws IOException {
        byte[] body = "lost\n".getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static Map<String, Integer> options(String[] arguments) {
        Map<String, Integer> options = new TreeMap<>(Map.of(
                "port", 8080, "heap", 0, "direct", 0,
                "malloc-every", 0, "thread-every", 0, "garbage-kb", 16));
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            String name = parts[0].startsWith("--") ? parts[0].substring(2) : "";
            if (parts.length != 2 || !options.containsKey(name) || !parts[1].matches("\\d{1,9}")) {
                System.err.println("leak: not an option: " + argument + "\n" + USAGE);
                System.exit(2);
            }
            options.put(name, Integer.valueOf(parts[1]));
        }
        return options;
    }
}
