package loadline.springweb;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** Someone who brings pets to the clinic. */
@Entity
@Table(name = "owners", indexes = @Index(name = "owners_last_name", columnList = "lastName"))
class Owner {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE) // IDENTITY would forbid batched inserts
    Long id;

    String firstName;
    String lastName;
    String address;
    String city;
    String telephone;

    @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL)
    @OrderBy("name")
    List<Pet> pets = new ArrayList<>();

    protected Owner() {} // for JPA

    Owner(String firstName, String lastName, String address, String city, String telephone) {
        this.firstName = firstName;
        this.lastName = lastName;
        this.address = address;
        this.city = city;
        this.telephone = telephone;
    }
}
