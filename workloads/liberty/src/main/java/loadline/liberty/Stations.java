package loadline.liberty;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.ws.rs.DefaultValue;
import javax.ws.rs.GET;
import javax.ws.rs.Path;
import javax.ws.rs.Produces;
import javax.ws.rs.QueryParam;
import javax.ws.rs.core.MediaType;

/** What a service does for a living: objects made, mapped and written as JSON. */
@Path("/stations")
public class Stations {
    /** A weather station with what it measured last; public getters, as the object mapper wants it. */
    public static final class Station {
        private final int id;
        private final String name;
        private final double celsius;

        Station(int id) {
            this.id = id;
            this.name = "station " + id;
            // The same values every time: a trial repeats what another one was asked.
            this.celsius = 10 + 15 * Math.sin(id);
        }

        public int getId() {
            return id;
        }

        public String getName() {
            return name;
        }

        public double getCelsius() {
            return celsius;
        }
    }

    /** The first stations, at most a thousand. */
    @GET
    @Produces(MediaType.APPLICATION_JSON)
    public List<Station> stations(@QueryParam("count") @DefaultValue("50") int count) {
        int end = Math.max(0, Math.min(count, 1000));
        return IntStream.range(0, end).mapToObj(Station::new).collect(Collectors.toList());
    }
}
