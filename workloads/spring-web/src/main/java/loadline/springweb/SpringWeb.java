package loadline.springweb;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** An ordinary Spring Boot service: Tomcat, JPA on a database in memory, actuator. */
@SpringBootApplication
public class SpringWeb {
    public static void main(String[] args) {
        SpringApplication.run(SpringWeb.class, args);
    }
}
