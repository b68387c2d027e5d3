package loadline.springweb;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.time.LocalDate;

/** An animal that belongs to an {@link Owner}. */
@Entity
@Table(name = "pets", indexes = @Index(name = "pets_owner", columnList = "owner_id"))
class Pet {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE)
    Long id;

    String name;
    String species;
    LocalDate birthDate;

    @ManyToOne(fetch = FetchType.LAZY)
    Owner owner;

    protected Pet() {} // for JPA

    Pet(Owner owner, String name, String species, LocalDate birthDate) {
        this.owner = owner;
        this.name = name;
        this.species = species;
        this.birthDate = birthDate;
    }
}
