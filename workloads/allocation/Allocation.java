import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Threads that allocate as fast as they can and write down how long each allocation took: what
 * an application sees of garbage collection and of CPU throttling, without asking either.
 */
public final class Allocation {
    private static final String USAGE = """
            usage: java -jar allocation.jar [--option=value ...]
              --threads=2         threads that allocate
              --threshold=300000  objects that each of them keeps
              --release=10        per cent of them that it drops when it has that many
              --over-us=2000      allocations slower than this are kept one by one
              --seconds=0         ends by itself after this long; 0 runs until SIGTERM
              --port=0            port for GET /health and GET /result; 0 is none
            Prints one line of JSON when it ends; see README.md.
            Also writes its slow allocations to the file that LOADLINE_PAUSES names.""";

    private Allocation() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Integer> options = options(arguments);
        List<Allocator> allocators = new ArrayList<>();
        for (int i = 0; i < options.get("threads"); i++) {
            allocators.add(new Allocator(i, options.get("threshold"), options.get("release"),
                    options.get("over-us") * 1000L));
        }
        long start = System.nanoTime();
        // Ends that come from outside report as well: SIGTERM runs the hook.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            allocators.forEach(Allocator::end);
            PauseFile.end();
            System.out.println(result(start, allocators));
        }));
        allocators.forEach(Thread::start);
        PauseFile.begin(allocators);
        if (options.get("port") > 0) {
            serve(options.get("port"), start, allocators);
        }
        if (options.get("seconds") > 0) {
            Thread.sleep(options.get("seconds") * 1000L);
            System.exit(0);
        }
    }

    private static void serve(int port, long start, List<Allocator> allocators) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 64);
        server.createContext("/", exchange -> {
            boolean isHealth = exchange.getRequestURI().getPath().equals("/health");
            byte[] body = (isHealth ? "UP" : result(start, allocators)).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    /** Times are nanoseconds; on Linux System.nanoTime is CLOCK_MONOTONIC. */
    private static String result(long start, List<Allocator> allocators) {
        StringBuilder json = new StringBuilder();
        json.append("{\"schema\":1,\"clock\":\"monotonic\",\"start_ns\":").append(start);
        json.append(",\"end_ns\":").append(System.nanoTime()).append(",\"threads\":[");
        String comma = "";
        for (Allocator allocator : allocators) {
            allocator.latencies().write(json.append(comma));
            comma = ",";
        }
        return json.append("]}").toString();
    }

    private static Map<String, Integer> options(String[] arguments) {
        Map<String, Integer> options = new TreeMap<>(Map.of(
                "threads", 2, "threshold", 300_000, "release", 10,
                "over-us", 2000, "seconds", 0, "port", 0));
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            String name = parts[0].startsWith("--") ? parts[0].substring(2) : "";
            if (parts.length != 2 || !options.containsKey(name) || !parts[1].matches("\\d{1,9}")) {
                refuse("not an option: " + argument);
            }
            options.put(name, Integer.valueOf(parts[1]));
        }
        if (options.get("threads") < 1 || options.get("threshold") < 1) {
            refuse("threads and threshold are at least 1");
        }
        if (options.get("release") < 1 || options.get("release") > 100) {
            refuse("release is 1 to 100");
        }
        return options;
    }

    private static void refuse(String why) {
        System.err.println("allocation: " + why + "\n" + USAGE);
        System.exit(2);
    }
}
