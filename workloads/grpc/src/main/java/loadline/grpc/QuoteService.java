package loadline.grpc;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Prices of baskets: each line is looked up, written out and signed, so a quote costs CPU and garbage. */
final class QuoteService extends QuotesGrpc.QuotesImplBase {
    private static final int MOST_DAYS = 1000;

    private record Product(String name, long cents) {}

    private final Map<String, Product> catalogue = new HashMap<>();

    QuoteService(int products) {
        for (int number = 0; number < products; number++) {
            long cents = 100 + (number * 7919L) % 9900;
            catalogue.put("sku-" + number, new Product("product number " + number, cents));
        }
    }

    @Override
    public void price(Basket basket, StreamObserver<Quote> answers) {
        if (isUnknown(basket, answers)) {
            return;
        }
        answers.onNext(quote(basket, 0));
        answers.onCompleted();
    }

    @Override
    public void watch(WatchRequest request, StreamObserver<Quote> answers) {
        if (request.getDays() < 1 || request.getDays() > MOST_DAYS) {
            answers.onError(Status.INVALID_ARGUMENT.withDescription("days: 1 to " + MOST_DAYS).asException());
            return;
        }
        if (isUnknown(request.getBasket(), answers)) {
            return;
        }
        for (int day = 0; day < request.getDays(); day++) {
            answers.onNext(quote(request.getBasket(), day));
        }
        answers.onCompleted();
    }

    private boolean isUnknown(Basket basket, StreamObserver<Quote> answers) {
        for (String item : basket.getItemsList()) {
            if (!catalogue.containsKey(item)) {
                answers.onError(Status.NOT_FOUND.withDescription(item).asException());
                return true;
            }
        }
        return false;
    }

    private Quote quote(Basket basket, int day) {
        List<Line> lines = new ArrayList<>();
        long total = 0;
        for (String item : basket.getItemsList()) {
            Product product = catalogue.get(item);
            long cents = product.cents() * (100 + day % 7) / 100;
            String text = String.format("%s, day %d: %d.%02d", product.name(), day, cents / 100, cents % 100);
            lines.add(Line.newBuilder().setItem(item).setText(text).setCents(cents).build());
            total += cents;
        }
        lines.sort(Comparator.comparingLong(Line::getCents));
        Instant now = Instant.now();
        return Quote.newBuilder()
                .setDay(day)
                .setMade(Timestamp.newBuilder().setSeconds(now.getEpochSecond()).setNanos(now.getNano()))
                .addAllLines(lines)
                .setTotalCents(total)
                .setSignature(signature(basket.getCustomer(), lines))
                .build();
    }

    private static ByteString signature(long customer, List<Line> lines) {
        MessageDigest digest = sha256();
        digest.update(Long.toString(customer).getBytes(StandardCharsets.UTF_8));
        for (Line line : lines) {
            digest.update(line.getText().getBytes(StandardCharsets.UTF_8));
        }
        return ByteString.copyFrom(digest.digest());
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
