package loadline.springweb;

import java.time.LocalDate;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The request that the studies load: a query, object mapping, JSON. */
@RestController
class OwnerController {
    record PetView(String name, String species, LocalDate birthDate) {
        PetView(Pet pet) {
            this(pet.name, pet.species, pet.birthDate);
        }
    }

    record OwnerView(
            Long id, String firstName, String lastName, String address, String city,
            String telephone, List<PetView> pets) {
        OwnerView(Owner o) {
            this(o.id, o.firstName, o.lastName, o.address, o.city, o.telephone,
                    o.pets.stream().map(PetView::new).toList());
        }
    }

    private final OwnerRepository owners;

    /** How often a request does its work again, on average: a release that takes more (0 by default). */
    private final double again;
    private final AtomicLong requests = new AtomicLong();

    OwnerController(OwnerRepository owners, @Value("${workload.again:0}") double again) {
        this.owners = owners;
        this.again = again;
    }

    /** All owners whose last name starts with the text, with their pets. */
    @GetMapping("/owners")
    @Transactional(readOnly = true)
    public List<OwnerView> owners(@RequestParam(defaultValue = "") String lastName) {
        long n = requests.getAndIncrement();
        // Evenly: of every hundred requests a hundred times the average.
        long more = (long) ((n + 1) * again) - (long) (n * again);
        while (more-- > 0) {
            look(lastName);
        }
        return look(lastName);
    }

    private List<OwnerView> look(String lastName) {
        return owners.findByLastNameStartingWithOrderByLastNameAscIdAsc(lastName).stream()
                .map(OwnerView::new)
                .toList();
    }
}
