import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads the topic `orders`, with a known cost: arithmetic for each message (--work-rounds; a round
 * takes 1 to 2 ns once compiled), and a window of the last messages that stays in the heap (--keep). Another thread answers with the lag on /metrics, and goes
 * on doing so if the reading one dies.
 */
public final class Consumer {
    private static volatile double lag = Double.NaN;
    private static volatile long read;
    private static long result;

    private Consumer() {}

    public static void main(String[] words) throws IOException {
        int keep = option(words, "--keep=", 3_000);
        int rounds = option(words, "--work-rounds=", 300_000);
        answerMetrics(option(words, "--port=", 9505));
        ArrayDeque<byte[]> window = new ArrayDeque<>();
        KafkaConsumer<byte[], byte[]> consumer = newConsumer();
        consumer.subscribe(List.of("orders"));
        while (true) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                work(rounds);
                window.add(record.value());
                if (window.size() > keep) {
                    window.poll();
                }
                read++;
            }
            lag = lagOf(consumer);
        }
    }

    /** Unread messages of all its partitions; NaN until the broker has told. */
    private static double lagOf(KafkaConsumer<byte[], byte[]> consumer) {
        double sum = consumer.assignment().isEmpty() ? Double.NaN : 0;
        for (TopicPartition partition : consumer.assignment()) {
            var lag = consumer.currentLag(partition);
            sum += lag.isPresent() ? lag.getAsLong() : Double.NaN;
        }
        return sum;
    }

    private static void work(int rounds) {
        for (int round = 0; round < rounds; round++) {
            result = result * 6_364_136_223_846_793_005L + round;
        }
    }

    private static void answerMetrics(int port) throws IOException {
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        HttpServer server = HttpServer.create(address, 0);
        server.createContext("/metrics", exchange -> {
            String text = """
                    # TYPE consumer_lag gauge
                    consumer_lag{topic="orders"} %s
                    # TYPE consumer_messages_total counter
                    consumer_messages_total{topic="orders"} %d
                    """.formatted(lag, read);
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
    }

    private static KafkaConsumer<byte[], byte[]> newConsumer() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:9092");
        properties.put("group.id", "consumer");
        properties.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static int option(String[] words, String name, int otherwise) {
        for (String word : words) {
            if (word.startsWith(name)) {
                return Integer.parseInt(word.substring(name.length()));
            }
        }
        return otherwise;
    }
}
