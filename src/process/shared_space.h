// An address space with sharing between processes: fork copies nothing until one side changes. Each distinct content
// has a unique generation number, so a cache key needs only (generation, address).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "process/address_space.h"

namespace flamewire::process {

class SharedSpace {
    struct Body;

public:
    using Known = std::weak_ptr<Body>;

    explicit SharedSpace(std::uint64_t& counter, AddressSpace map = AddressSpace())
        : counter_(&counter), body_(std::make_shared<Body>(counter, std::move(map))) {}

    [[nodiscard]] std::uint64_t generation() const { return body_->generation; }
    [[nodiscard]] const AddressSpace& map() const { return body_->map; }
    // The next change copies the content.
    [[nodiscard]] bool shared() const { return body_.use_count() != 1; }
    [[nodiscard]] const Mapping* find(std::uint64_t address) const { return body_->map.find(address); }

    // Records that an address was reported as unmapped: a new mapping can make that answer wrong.
    void note_unknown_answer() { body_->answered_unknown = true; }

    // True if anything changed.
    bool insert(const Mapping& mapping) {
        unshare();
        const AddressSpace::Change change = body_->map.insert(mapping);
        if (change == AddressSpace::Change::replaced ||
            (change == AddressSpace::Change::added && body_->answered_unknown))
            renew();
        return change != AddressSpace::Change::none;
    }
    // Adds the mappings of `map` where nothing was known. True if anything was added.
    bool fill(const AddressSpace& map) {
        AddressSpace filled = body_->map;
        bool added = false;
        for (const Mapping& mapping : map.mappings()) added |= filled.fill(mapping);
        if (!added) return false;
        unshare();
        body_->map = std::move(filled);
        if (body_->answered_unknown) renew();
        return true;
    }
    bool erase(std::uint64_t start, std::uint64_t end) {
        unshare();
        const bool changed = body_->map.erase(start, end);
        if (changed) renew();
        return changed;
    }
    // True if `map` differs from the known content.
    bool replace(AddressSpace map) {
        if (map == body_->map) return false;
        body_ = std::make_shared<Body>(*counter_, std::move(map));
        return true;
    }
    // Invalidates all cached answers. Later answers may apply to this process only.
    void forget_answers() {
        unshare();
        renew();
        body_->private_answers = true;
    }
    [[nodiscard]] Known known() const { return body_; }
    // Shares another process's content if it is the same, so that its cached answers apply here too. False if it
    // differs or is gone.
    bool share(const Known& other, const AddressSpace& map) {
        auto body = other.lock();
        if (!body || body->private_answers || body->map != map) return false;
        body_ = std::move(body);
        return true;
    }

private:
    struct Body {
        Body(std::uint64_t& counter, AddressSpace map_in) : map(std::move(map_in)), generation(++counter) {}
        AddressSpace map;
        std::uint64_t generation;
        bool answered_unknown = false;
        bool private_answers = false;
    };

    void renew() {
        body_->generation = ++*counter_;
        body_->answered_unknown = false;
    }
    void unshare() {
        if (shared()) body_ = std::make_shared<Body>(*counter_, body_->map);
    }

    std::uint64_t* counter_;
    std::shared_ptr<Body> body_;
};

}  // namespace flamewire::process
