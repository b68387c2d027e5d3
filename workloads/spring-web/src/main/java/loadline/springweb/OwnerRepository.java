package loadline.springweb;

import java.util.List;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;

interface OwnerRepository extends JpaRepository<Owner, Long> {
    /** Owners whose last name starts with the prefix, with their pets: one SQL statement. */
    @EntityGraph(attributePaths = "pets")
    List<Owner> findByLastNameStartingWithOrderByLastNameAscIdAsc(String prefix);
}
