package loadline.liberty;

import javax.enterprise.context.ApplicationScoped;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.Readiness;

/** The service has nothing to wait for: it is ready as soon as somebody can ask it. */
@Readiness
@ApplicationScoped
public class Ready implements HealthCheck {
    @Override
    public HealthCheckResponse call() {
        return HealthCheckResponse.up("stations");
    }
}
