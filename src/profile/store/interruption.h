// Stops a query whose result nobody needs anymore. Another thread requests it, and the loops over rows and trees check
// for it now and then. A query changes nothing, so it can stop anywhere.
#pragma once

#include <atomic>
#include <exception>

namespace flamewire::profile {

class Interrupted final : public std::exception {
public:
    [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

class Interruption {
public:
    // From any thread.
    void ask() { asked_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool asked() const { return asked_.load(std::memory_order_relaxed); }

    // While this object exists, check() on this thread refers to `interruption`.
    class Scope {
    public:
        explicit Scope(const Interruption& interruption) : before_(current()) { current() = &interruption; }
        ~Scope() { current() = before_; }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        const Interruption* before_;
    };
    // Throws Interrupted if an interruption was requested.
    static void check() {
        if (current() != nullptr && current()->asked()) throw Interrupted();
    }

private:
    static const Interruption*& current() {
        thread_local const Interruption* interruption = nullptr;
        return interruption;
    }
    std::atomic<bool> asked_ = false;
};

}  // namespace flamewire::profile
