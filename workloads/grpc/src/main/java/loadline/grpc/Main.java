package loadline.grpc;

import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionService;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import java.io.IOException;

/** The service with health and reflection, as most have them. */
public final class Main {
    private static final int PRODUCTS = 10_000;

    private Main() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        int port = 9090;
        String reflection = "both";
        for (String argument : arguments) {
            if (argument.startsWith("--port=")) {
                port = Integer.parseInt(argument.substring("--port=".length()));
            } else if (argument.startsWith("--reflection=")) {
                reflection = argument.substring("--reflection=".length());
            } else {
                System.err.println("usage: java -jar grpc.jar [--port=9090] [--reflection=both|v1|v1alpha|none]");
                System.exit(2);
            }
        }
        start(port, reflection).awaitTermination();
    }

    @SuppressWarnings("deprecation") // Clients of v1alpha alone are still in use.
    private static Server start(int port, String reflection) throws IOException {
        HealthStatusManager health = new HealthStatusManager();
        ServerBuilder<?> builder = Grpc.newServerBuilderForPort(port, InsecureServerCredentials.create())
                .addService(new QuoteService(PRODUCTS))
                .addService(health.getHealthService());
        if (reflection.equals("v1") || reflection.equals("both")) {
            builder.addService(ProtoReflectionServiceV1.newInstance());
        }
        if (reflection.equals("v1alpha") || reflection.equals("both")) {
            builder.addService(ProtoReflectionService.newInstance());
        }
        Server server = builder.build().start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            health.enterTerminalState();
            server.shutdown();
        }));
        return server;
    }
}
