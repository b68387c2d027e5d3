import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;

/** HTTPS of Tomcat, HTTP/2 by ALPN: every path is answered with the protocol of its request. */
public final class SecureHttp2 {
    public static void main(String[] arguments) throws Exception {
        SSLHostConfig tls = new SSLHostConfig();
        SSLHostConfigCertificate key =
                new SSLHostConfigCertificate(tls, SSLHostConfigCertificate.Type.UNDEFINED);
        key.setCertificateKeystoreFile(arguments[0]);
        key.setCertificateKeystorePassword(arguments[1]);
        tls.addCertificate(key);
        Connector connector = new Connector();
        connector.setPort(8443);
        connector.setSecure(true);
        connector.setScheme("https");
        connector.setProperty("SSLEnabled", "true");
        connector.addSslHostConfig(tls);
        connector.addUpgradeProtocol(new Http2Protocol());

        Tomcat tomcat = new Tomcat();
        String base = Files.createTempDirectory("tomcat").toString();
        tomcat.setBaseDir(base);
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", base);
        Tomcat.addServlet(context, "protocol", new Protocol());
        context.addServletMappingDecoded("/", "protocol");
        tomcat.start();
        tomcat.getServer().await();
    }

    private static final class Protocol extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().write(request.getProtocol());
        }
    }
}
