package loadline.springweb;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * Fills the database: the same owners at every start. It runs before Tomcat opens its port, so the
 * first answer is a full one (an ApplicationRunner would run after).
 */
@Component
class SeedData implements SmartInitializingSingleton {
    private static final List<String> FIRST_NAMES = List.of(
            "Ada", "Ben", "Carla", "David", "Edith", "Farid", "Grace", "Hana", "Ivan", "Jean");
    private static final List<String> LAST_NAMES = List.of(
            "Abbott", "Baker", "Coleman", "Dallas", "Davis", "Dawson", "Estaban", "Franklin",
            "Garcia", "Hughes", "Ito", "Jensen", "Kowalski", "Lopez", "McTavish", "Novak",
            "Okafor", "Petrov", "Rodriquez", "Schroeder", "Tanaka", "Underwood", "Vogel", "Weber",
            "Young");
    private static final List<String> CITIES = List.of(
            "Madison", "Sun Prairie", "Monona", "Waunakee", "Windsor");
    private static final List<String> PETS = List.of(
            "Basil", "Freddy", "George", "Iggy", "Jewel", "Leo", "Lucky", "Max", "Mulligan", "Rosy");
    private static final List<String> SPECIES = List.of(
            "bird", "cat", "dog", "hamster", "lizard", "snake");

    private final OwnerRepository owners;
    private final int count;

    SeedData(OwnerRepository owners, @Value("${workload.owners}") int count) {
        this.owners = owners;
        this.count = count;
    }

    @Override
    public void afterSingletonsInstantiated() {
        Random random = new Random(42); // its sequence is specified: equal on every JDK
        List<Owner> all = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            // Last names in turn, so that every prefix finds the same share of the owners.
            Owner owner = new Owner(
                    pick(FIRST_NAMES, random), LAST_NAMES.get(i % LAST_NAMES.size()),
                    (100 + random.nextInt(900)) + " Main St.", pick(CITIES, random),
                    "608555" + (1000 + random.nextInt(9000)));
            for (int pets = 1 + random.nextInt(3); pets > 0; pets--) {
                owner.pets.add(new Pet(owner, pick(PETS, random), pick(SPECIES, random),
                        LocalDate.of(2015, 1, 1).plusDays(random.nextInt(3650))));
            }
            all.add(owner);
        }
        owners.saveAll(all);
    }

    private static String pick(List<String> from, Random random) {
        return from.get(random.nextInt(from.size()));
    }
}
