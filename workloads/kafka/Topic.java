import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Fills the topic `orders` of a broker on this host, and moves the consumer's offset back. */
public final class Topic {
    private static final String USAGE = """
            usage: java Topic COMMAND
              produce RATE SECONDS  send RATE messages of 8 KiB a second
              backlog COUNT         leave COUNT messages that the group `consumer` has not read""";
    private static final TopicPartition ORDERS = new TopicPartition("orders", 0);
    private static final byte[] MESSAGE = new byte[8192];

    private Topic() {}

    public static void main(String[] words) throws Exception {
        switch (words.length == 0 ? "" : words[0]) {
            case "produce" -> produce(Long.parseLong(words[1]), Long.parseLong(words[2]));
            case "backlog" -> restoreBacklog(Long.parseLong(words[1]));
            default -> {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
    }

    private static void produce(long rate, long seconds) throws InterruptedException {
        try (KafkaProducer<byte[], byte[]> producer = newProducer()) {
            long begin = System.nanoTime();
            for (long sent = 0; sent < rate * seconds; sent++) {
                long wait = begin + sent * 1_000_000_000L / rate - System.nanoTime();
                if (wait > 0) {
                    Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                }
                producer.send(new ProducerRecord<>(ORDERS.topic(), MESSAGE));
            }
        }
    }

    private static void restoreBacklog(long count) throws Exception {
        try (Admin admin = Admin.create(properties())) {
            createTopic(admin);
            long missing = count - endOffset(admin);
            if (missing > 0) {
                try (KafkaProducer<byte[], byte[]> producer = newProducer()) {
                    for (long sent = 0; sent < missing; sent++) {
                        producer.send(new ProducerRecord<>(ORDERS.topic(), MESSAGE));
                    }
                }
            }
            removeMembers(admin);
            OffsetAndMetadata read = new OffsetAndMetadata(endOffset(admin) - count);
            admin.alterConsumerGroupOffsets("consumer", Map.of(ORDERS, read)).all().get();
        }
    }

    /** A consumer that was killed counts as a member for 45 s, and an offset in use cannot be moved. */
    private static void removeMembers(Admin admin) throws InterruptedException {
        try {
            admin.removeMembersFromConsumerGroup("consumer", new RemoveMembersFromConsumerGroupOptions()).all().get();
        } catch (ExecutionException error) {
            System.err.println("no member removed: " + error.getMessage());
        }
    }

    private static void createTopic(Admin admin) throws Exception {
        try {
            admin.createTopics(List.of(new NewTopic(ORDERS.topic(), 1, (short) 1))).all().get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
    }

    private static long endOffset(Admin admin) throws Exception {
        return admin.listOffsets(Map.of(ORDERS, OffsetSpec.latest())).partitionResult(ORDERS).get().offset();
    }

    private static KafkaProducer<byte[], byte[]> newProducer() {
        return new KafkaProducer<>(properties(), new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:9092");
        return properties;
    }
}
