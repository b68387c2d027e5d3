package loadline.springweb;

import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import org.springframework.web.server.ResponseStatusException;

/** What another service knows, with the owners: it is asked first, and again when it fails. */
@RestController
@ConditionalOnProperty("workload.prices")
class OfferController {
    record Offer(String price, List<OwnerController.OwnerView> owners) {}

    private final OwnerController owners;
    private final RestClient prices;
    private final int tries;

    OfferController(
            OwnerController owners, RestClient.Builder client,
            @Value("${workload.prices}") String url, @Value("${workload.tries}") int tries) {
        this.owners = owners;
        this.prices = client.baseUrl(url).build();
        this.tries = tries;
    }

    @GetMapping("/offers")
    Offer offers(@RequestParam(defaultValue = "") String lastName) {
        // Before the query, so that no connection of the database waits for the other service.
        return new Offer(price(), owners.owners(lastName));
    }

    private String price() {
        RestClientException last = null;
        for (int attempt = 0; attempt < tries; attempt++) {
            try {
                return prices.get().uri("/prices/7").retrieve().body(String.class);
            } catch (RestClientException e) {
                last = e;
            }
        }
        throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE, "no price", last);
    }
}
