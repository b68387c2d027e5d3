package loadline.liberty;

import javax.ws.rs.ApplicationPath;
import javax.ws.rs.core.Application;

/** Every resource of this archive answers below the server's root. */
@ApplicationPath("/")
public class Service extends Application {}
