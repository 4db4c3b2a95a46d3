// Single steps through the GDB stub of qemu's user emulation. Source: GDB manual, appendix "GDB Remote Serial Protocol".
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "elf/elf_file.h"
#include "target.h"

namespace flamewire::steps {
namespace {

using unwind::Arch;
using unwind::Registers;

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(2);
}

int hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// One connection. Requests and answers alternate.
class Stub {
public:
    explicit Stub(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        for (int attempt = 0; attempt < 500; ++attempt) {
            socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) break;
            ::close(socket_);
            socket_ = -1;
            ::usleep(10000);
        }
        if (socket_ < 0) die("the emulator's stub does not answer");
        if (ask("QStartNoAckMode") == "OK") acknowledge_ = false;
    }
    ~Stub() { ::close(socket_); }
    Stub(const Stub&) = delete;
    Stub& operator=(const Stub&) = delete;

    // Empty if the connection is closed.
    std::string ask(const std::string& request) {
        unsigned sum = 0;
        for (const char character : request) sum += static_cast<unsigned char>(character);
        char tail[8];
        std::snprintf(tail, sizeof tail, "#%02x", sum & 0xff);
        const std::string packet = "$" + request + tail;
        if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return {};
        return answer();
    }

private:
    std::string answer() {
        for (;;) {
            const std::size_t start = buffer_.find('$');
            const std::size_t end = start == std::string::npos ? start : buffer_.find('#', start);
            if (end != std::string::npos && buffer_.size() >= end + 3) {
                std::string text = buffer_.substr(start + 1, end - start - 1);
                buffer_.erase(0, end + 3);
                if (acknowledge_) (void)!::send(socket_, "+", 1, MSG_NOSIGNAL);
                return text;
            }
            char bytes[16384];
            const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
            if (count <= 0) return {};
            buffer_.append(bytes, static_cast<std::size_t>(count));
        }
    }

    int socket_ = -1;
    bool acknowledge_ = true;
    std::string buffer_;
};

class EmulatedTarget final : public Target {
public:
    EmulatedTarget(Arch arch, const std::string& emulator, const std::string& program)
        : arch_(arch), program_(program), process_(start(emulator, program)), stub_(socket_) {
        (void)stub_.ask("?");
    }
    ~EmulatedTarget() override {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        ::unlink(socket_.c_str());
        ::rmdir(directory_.c_str());
    }
    EmulatedTarget(const EmulatedTarget&) = delete;
    EmulatedTarget& operator=(const EmulatedTarget&) = delete;

    Event step() override {
        const unsigned signal = signal_;
        signal_ = 0;
        if (arch_ == Arch::aarch64 && signal == 0) pass_exclusive_pair();
        char request[32];
        std::snprintf(request, sizeof request, signal == 0 ? "vCont;s" : "vCont;S%02x", signal);
        const std::string answer = stub_.ask(request);
        if (answer.size() < 3 || (answer[0] != 'T' && answer[0] != 'S')) return Event::ended;
        constexpr unsigned trap = 5;
        const auto reason = static_cast<unsigned>(hex_digit(answer[1]) * 16 + hex_digit(answer[2]));
        if (reason != trap) signal_ = reason;
        return signal != 0 ? Event::handler : Event::stepped;
    }

    bool run_to(std::uint64_t) override { return false; }

    Registers registers() override {
        const std::string hex = stub_.ask("g");
        const std::size_t size = unwind::register_names(arch_).word_size;
        const std::size_t count = arch_ == Arch::aarch64 ? 33 : arch_ == Arch::arm ? 16 : 17;
        Registers registers(arch_);
        for (std::size_t position = 0; position < count && hex.size() >= (position + 1) * size * 2; ++position) {
            std::uint64_t value = 0;
            for (std::size_t byte = size; byte-- > 0;) {
                const std::size_t at = (position * size + byte) * 2;
                value = value << 8 | static_cast<unsigned>(hex_digit(hex[at]) * 16 + hex_digit(hex[at + 1]));
            }
            registers.set(number_of(position), value);
        }
        return registers;
    }

    std::size_t read(std::uint64_t address, std::span<std::byte> out) override {
        std::size_t done = 0, most = 1024;
        while (done < out.size() && most > 0) {
            const std::size_t size = std::min(most, out.size() - done);
            char request[48];
            std::snprintf(request, sizeof request, "m%llx,%zx", static_cast<unsigned long long>(address + done), size);
            const std::string hex = stub_.ask(request);
            if (hex.empty() || hex[0] == 'E') {  // part of it is not readable
                most = size / 2;
                continue;
            }
            for (std::size_t at = 0; at + 1 < hex.size() && done < out.size(); at += 2)
                out[done++] = static_cast<std::byte>(hex_digit(hex[at]) * 16 + hex_digit(hex[at + 1]));
        }
        return done;
    }

    // A static program is loaded at the addresses in its file.
    std::vector<Mapping> mappings() override {
        constexpr std::uint64_t page = 4096;
        std::vector<Mapping> mappings;
        const auto file = read_file(program_, std::size_t{1} << 30);
        if (!file) return mappings;
        const auto header = elf::read_header(elf::source_of_bytes(as_bytes_view(*file)));
        if (!header) return mappings;
        for (const elf::Segment& segment : header->segments) {
            if (segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0) continue;
            const std::uint64_t before = segment.vaddr % page;
            mappings.push_back({.start = segment.vaddr - before,
                                .end = segment.vaddr + segment.memory_size,
                                .offset = segment.offset - before,
                                .executable = true,
                                .path = program_});
        }
        return mappings;
    }

private:
    // Runs an exclusive load and its store as one step: between single steps the store never succeeds.
    void pass_exclusive_pair() {
        const std::uint64_t pc = registers().pc();
        const auto code_at = [&](std::uint64_t address) { return read_value<std::uint32_t>(address).value_or(0); };
        constexpr std::uint32_t exclusive = 0x3fc00000, load = 0x08400000, store = 0x08000000;
        if ((code_at(pc) & exclusive) != load) return;
        std::vector<std::uint64_t> ends;
        constexpr std::uint64_t longest = 32;
        for (std::uint64_t address = pc + 4; address < pc + longest; address += 4) {
            const std::uint32_t code = code_at(address);
            if (code >> 24 == 0x54) {  // b.cond out of the pair
                const auto distance = static_cast<std::int32_t>((code & 0x00ffffe0) << 8) >> 11;
                ends.push_back(address + static_cast<std::uint64_t>(std::int64_t{distance & ~3}));
            }
            if ((code & exclusive) != store) continue;
            ends.push_back(address + 4);
            for (const std::uint64_t end : ends) breakpoint('Z', end);
            (void)stub_.ask("vCont;c");
            for (const std::uint64_t end : ends) breakpoint('z', end);
            return;
        }
    }
    void breakpoint(char what, std::uint64_t address) {
        char request[32];
        std::snprintf(request, sizeof request, "%c0,%llx,4", what, static_cast<unsigned long long>(address));
        (void)stub_.ask(request);
    }

    // The stub's order of registers is gdb's. Only that of x86-64 differs from DWARF's.
    [[nodiscard]] std::size_t number_of(std::size_t position) const {
        constexpr std::uint8_t x86_64[] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
        return arch_ == Arch::x86_64 ? x86_64[position] : position;
    }

    static std::string make_directory() {
        char path[] = "/tmp/flamewire-steps-XXXXXX";
        if (::mkdtemp(path) == nullptr) die("no directory for the emulator's socket");
        return path;
    }

    pid_t start(const std::string& emulator, const std::string& program) {
        const pid_t child = ::fork();
        if (child < 0) die("fork");
        if (child != 0) return child;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
        // libc reads each environment variable, which is slow here.
        const char* const argv[] = {emulator.c_str(), "-g", socket_.c_str(), program.c_str(), nullptr};
        char* const environment[] = {nullptr};
        ::execvpe(emulator.c_str(), const_cast<char* const*>(argv), environment);
        ::_exit(127);
    }

    Arch arch_;
    std::string program_;
    std::string directory_ = make_directory();
    std::string socket_ = directory_ + "/stub";
    pid_t process_;
    Stub stub_;
    unsigned signal_ = 0;
};

}  // namespace

std::unique_ptr<Target> emulated_target(Arch arch, const std::string& emulator, const std::string& program) {
    return std::make_unique<EmulatedTarget>(arch, emulator, program);
}

}  // namespace flamewire::steps
