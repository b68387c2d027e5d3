package loadline.springweb;

import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The cheapest request the framework can serve; it touches no database. */
@RestController
class HealthController {
    @GetMapping(path = "/health", produces = MediaType.TEXT_PLAIN_VALUE)
    String health() {
        return "UP";
    }
}
