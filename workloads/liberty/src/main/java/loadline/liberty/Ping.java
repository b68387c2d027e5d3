package loadline.liberty;

import javax.ws.rs.GET;
import javax.ws.rs.Path;
import javax.ws.rs.Produces;
import javax.ws.rs.core.MediaType;

/** The cheapest request that REST can serve here; what the study loads. */
@Path("/ping")
public class Ping {
    @GET
    @Produces(MediaType.TEXT_PLAIN)
    public String ping() {
        return "pong\n";
    }
}
