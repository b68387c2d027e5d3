import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;

/**
 * A service that starts in a fraction of a second and costs exactly what its options say:
 * CPU and garbage per request, and a live set that stays in the heap.
 */
public final class Ping {
    private static final String USAGE = """
            usage: java -jar ping.jar [--option=value ...]
              --port=8080        port to listen on, all interfaces
              --threads=8        threads that serve requests
              --work-rounds=0    arithmetic per request on /; a round takes 1 to 2 ns once compiled
              --allocate-kb=0    garbage made per request on /, KiB
              --live-mb=0        memory held for good, filled before the port opens, MiB
              --start-ms=0       sleep before the port opens, milliseconds""";

    /** What the optimiser must believe in: results of work that is otherwise thrown away. */
    private static volatile long sink;

    /** Kept so that the collector cannot free it. */
    private static List<byte[]> live;

    private Ping() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Integer> options = options(arguments);
        live = allocate(Math.multiplyExact(options.get("live-mb"), 1024));
        Thread.sleep(options.get("start-ms"));

        // Without it JDK 17 and 21 answer no faster than delayed ACKs allow.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress(options.get("port")), 1024);
        server.setExecutor(Executors.newFixedThreadPool(options.get("threads")));
        server.createContext("/health", exchange -> answer(exchange, "UP\n"));
        int work = options.get("work-rounds");
        int garbage = options.get("allocate-kb");
        server.createContext("/", exchange -> {
            sink += allocate(garbage).size();
            burn(work);
            answer(exchange, "pong\n");
        });
        server.start();
        System.out.println("ping is ready on port " + options.get("port")
                + ", holding " + live.size() + " KiB");
    }

    private static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] body = text.getBytes();
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    /** Blocks of 1 KiB, as small objects are what services allocate. */
    private static List<byte[]> allocate(int kib) {
        List<byte[]> blocks = new ArrayList<>(kib);
        for (int i = 0; i < kib; i++) {
            blocks.add(new byte[1024]);
        }
        return blocks;
    }

    /** A fixed amount of work, not of time: under a quota it takes longer, as real work does. */
    private static void burn(int rounds) {
        long value = sink;
        for (int i = 0; i < rounds; i++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        sink = value;
    }

    private static Map<String, Integer> options(String[] arguments) {
        Map<String, Integer> options = new TreeMap<>(Map.of(
                "port", 8080, "threads", 8, "work-rounds", 0,
                "allocate-kb", 0, "live-mb", 0, "start-ms", 0));
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            String name = parts[0].startsWith("--") ? parts[0].substring(2) : "";
            if (parts.length != 2 || !options.containsKey(name) || !parts[1].matches("\\d{1,9}")) {
                System.err.println("ping: not an option: " + argument + "\n" + USAGE);
                System.exit(2);
            }
            options.put(name, Integer.valueOf(parts[1]));
        }
        return options;
    }
}
