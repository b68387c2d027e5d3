package loadline.tomcat;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;

/** A servlet container and nothing above it: what a start costs before any framework. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        int port = 8080;
        for (String argument : arguments) {
            if (argument.startsWith("--port=")) {
                port = Integer.parseInt(argument.substring("--port=".length()));
            } else {
                System.err.println("usage: java -jar tomcat.jar [--port=8080]");
                System.exit(2);
            }
        }
        start(port).getServer().await();
    }

    private static Tomcat start(int port) throws IOException, LifecycleException {
        Path base = Files.createTempDirectory("tomcat");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(base.toString());
        tomcat.setPort(port);
        tomcat.getConnector();
        Context context = tomcat.addContext("", base.toString());
        serve(context, "health", "/health", "UP\n");
        serve(context, "greeting", "/", "hello\n");
        Tomcat.addServlet(context, "login", new Login());
        context.addServletMappingDecoded("/login", "login");
        Tomcat.addServlet(context, "cart", new Cart());
        context.addServletMappingDecoded("/cart", "cart");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(tomcat)));
        tomcat.start();
        return tomcat;
    }

    private static void serve(Context context, String name, String path, String text) {
        Tomcat.addServlet(context, name, new Answer(text));
        context.addServletMappingDecoded(path, name);
    }

    private static void stop(Tomcat tomcat) {
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException e) {
            System.err.println("tomcat did not stop: " + e);
        }
    }

    /** Begins a session, which holds what a signed-in user's does. */
    private static final class Login extends HttpServlet {
        private static final long serialVersionUID = 1L;
        private static final int HELD = 16 * 1024;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            request.getSession().setAttribute("held", new byte[HELD]);
            response.getWriter().write("welcome\n");
        }
    }

    /** Is for those who are signed in. */
    private static final class Cart extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            if (request.getSession(false) == null) {
                response.sendError(HttpServletResponse.SC_UNAUTHORIZED);
                return;
            }
            response.getWriter().write("empty\n");
        }
    }

    private static final class Answer extends HttpServlet {
        private static final long serialVersionUID = 1L;

        private final String text;

        Answer(String text) {
            this.text = text;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.setContentType("text/plain");
            response.getWriter().write(text);
        }
    }
}
