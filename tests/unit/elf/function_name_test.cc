// Names of functions in real symbols. The symbols are from libstdc++, LLVM, V8 and the Rust compiler, and a few by hand
// for special cases. Another test compares all functions of this program with c++filt.
#include "elf/function_name.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "elf/function_symbols.h"
#include "real_files.h"

namespace flamewire::elf {
namespace {

struct Row {
    const char* symbol;
    const char* demangled;  // by llvm-cxxfilt-16
    const char* name;       // without arguments; empty if a path of names does not match it
};
const std::vector<Row> rows = {
    {"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int>>::push_back(int&&)",
     "std::vector::push_back"},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
     "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>::append(char const*)",
     "std::__cxx11::basic_string::append"},
    {"_ZNSs6appendEPKc", "std::string::append(char const*)", "std::string::append"},
    {"_ZNSo5writeEPKcl", "std::ostream::write(char const*, long)", "std::ostream::write"},
    {"_ZNSoC1Ev", "std::basic_ostream<char, std::char_traits<char>>::basic_ostream()",
     "std::basic_ostream::basic_ostream"},
    {"_ZNSi4readEPcl", "std::istream::read(char*, long)", "std::istream::read"},
    {"_ZNSdD1Ev", "std::basic_iostream<char, std::char_traits<char>>::~basic_iostream()",
     "std::basic_iostream::~basic_iostream"},
    {"_ZNSaIcEC1Ev", "std::allocator<char>::allocator()", "std::allocator::allocator"},
    {"_ZSt4sortIN9__gnu_cxx17__normal_iteratorIPiSt6vectorIiSaIiEEEEEvT_S7_",
     "void std::sort<__gnu_cxx::__normal_iterator<int*, std::vector<int, "
     "std::allocator<int>>>>(__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int>>>, "
     "__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int>>>)",
     "std::sort"},
    {"_ZSt9terminatev", "std::terminate()", "std::terminate"},
    {"_ZNKSt6locale4nameB5cxx11Ev", "std::locale::name[abi:cxx11]() const", "std::locale::name"},
    {"_ZNSt8ios_base4InitC1Ev", "std::ios_base::Init::Init()", "std::ios_base::Init::Init"},
    {"_ZNSt8ios_base4InitD2Ev", "std::ios_base::Init::~Init()", "std::ios_base::Init::~Init"},
    {"_ZNSt8ios_base4InitD0Ev", "std::ios_base::Init::~Init()", ""},
    {"_ZN9__gnu_cxx18stdio_sync_filebufIcSt11char_traitsIcEE4syncEv",
     "__gnu_cxx::stdio_sync_filebuf<char, std::char_traits<char>>::sync()", "__gnu_cxx::stdio_sync_filebuf::sync"},
    {"_ZNSt10filesystem7__cxx114path9_M_appendESt17basic_string_viewIcSt11char_traitsIcEE",
     "std::filesystem::__cxx11::path::_M_append(std::basic_string_view<char, std::char_traits<char>>)",
     "std::filesystem::__cxx11::path::_M_append"},
    {"_ZN12_GLOBAL__N_14pool4freeEPv", "(anonymous namespace)::pool::free(void*)", "(anonymous namespace)::pool::free"},
    {"_ZN4llvm12function_refIFvNS_8OptionalIiEENS1_INS_5TwineEEEEE11callback_fnIZNS_9AsmParser3runEbEUlS2_S4_E0_EEvlS2_"
     "S4_",
     "void llvm::function_ref<void (llvm::Optional<int>, "
     "llvm::Optional<llvm::Twine>)>::callback_fn<llvm::AsmParser::run(bool)::'lambda0'(llvm::Optional<int>, "
     "llvm::Optional<llvm::Twine>)>(long, llvm::Optional<int>, llvm::Optional<llvm::Twine>)",
     "llvm::function_ref::callback_fn"},
    {"_ZN2v88internal4wasm11WasmDecoderILNS1_7Decoder12ValidateFlagE1ELNS1_12DecodingModeE0EE12OpcodeLengthEPS5_PKh",
     "v8::internal::wasm::WasmDecoder<(v8::internal::wasm::Decoder::ValidateFlag)1, "
     "(v8::internal::wasm::DecodingMode)0>::OpcodeLength(v8::internal::wasm::DecodingMode*, unsigned char const*)",
     "v8::internal::wasm::WasmDecoder::OpcodeLength"},
    {"_ZN3fooILi42ELin7ELb1EXadL_Z3barvEEE3runEv", "foo<42, -7, true, &bar()>::run()", "foo::run"},
    {"_ZN3BoxIJCiEE3getEv", "Box<int complex>::get()", "Box::get"},
    {"_ZN3BoxIJDv4_fDnDuDsA3_iM3FooiMS2_KFvvEDoFvvEDF16_EE3getEv",
     "Box<float vector[4], std::nullptr_t, char8_t, char16_t, int [3], int Foo::*, void (Foo::*)() const, void () "
     "noexcept, _Float16>::get()",
     "Box::get"},
    {"_ZN3BoxIJPFvizES_IJEES_IJS_IJiEES3_EERVKiOiEE3getEv",
     "Box<void (*)(int, ...), Box<>, Box<Box<int>, Box<int>>, int const volatile&, int&&>::get()", "Box::get"},
    {"_ZN3BoxIJZ2govE1L_0EE3getEv", "Box<go()::L>::get()", "Box::get"},
    {"_ZN3BoxIJZ2govE1L__10_EE3getEv", "Box<go()::L>::get()", "Box::get"},
    {"_ZN3BoxIJZN3FooC4EvE5LocalEE3getEv", "Box<Foo::Foo()::Local>::get()", "Box::get"},
    {"_ZN3BoxIJZNK3Foo1fEvEUlicE_EE3getEv", "Box<Foo::f() const::'lambda'(int, char)>::get()", "Box::get"},
    {"_ZN3BoxIJZNK3Foo1fEvEUlvE0_EE3getEv", "Box<Foo::f() const::'lambda0'()>::get()", "Box::get"},
    {"_ZN3ValIJLi1ELin2ELc99ELb1ELDnELN3Foo2In1EE1ELPS0_0EXadL_ZNS0_1sEEEXadL_ZNKS0_1fEvEEXadL_ZNS0_1mEEEXadL_"
     "ZL2stvEEEE3getEv",
     "Val<1, -2, (char)99, true, nullptr, (Foo::In::E)1, (Foo*)0, &Foo::s, &Foo::f() const, &Foo::m, &st()>::get()",
     "Val::get"},
    {"_ZN3ValIJXtl1PLi1ELd4004000000000000EEELj3ELm1ELxn7ELd4004000000000000EEE3getEv",
     "Val<P{1, 0x1.4p+1}, 3u, 1ul, -7ll, 0x1.4p+1>::get()", "Val::get"},
    {"_ZN3BoxIJN3FooUt0_ENS0_Ut1_EiNS0_Ut2_EEE3getEv",
     "Box<Foo::'unnamed0', Foo::'unnamed1', int, Foo::'unnamed2'>::get()", "Box::get"},
    {"_ZN3BoxIJN3FooUt0_ES0_EE3getEv", "Box<Foo::'unnamed0', Foo>::get()", "Box::get"},
    {"_Z3fooi", "foo(int)", "foo"},
    {"_Z3foo3Bar", "foo(Bar)", "foo"},
    {"_Z3fooIiEvT_", "void foo<int>(int)", "foo"},
    {"_ZL3foov", "foo()", "foo"},
    {"_ZN2nsL3fooEi", "ns::foo(int)", "ns::foo"},
    {"_ZN2ns3fooIiE3runEv", "ns::foo<int>::run()", "ns::foo::run"},
    {"_ZNKR2ns3Set4sizeEv", "ns::Set::size() const &", "ns::Set::size"},
    {"_ZThn16_N2ns3Set4sizeEv", "non-virtual thunk to ns::Set::size()", ""},
    {"_ZN2ns3SetC2IiEET_", "ns::Set::Set<int>(int)", "ns::Set::Set"},
    {"_ZN2ns3Set3SetEv", "ns::Set::Set()", "ns::Set::Set"},
    {"_ZZ4mainENKUlvE_clEv", "main::'lambda'()::operator()() const", ""},
    {"_ZN2ns3SetpLERKS0_", "ns::Set::operator+=(ns::Set const&)", ""},
    {"_ZTVN2ns3SetE", "vtable for ns::Set", ""},
    {"_ZN2ns3fooE", "ns::foo", ""},
    {"_ZN6sample5plain17he45db904d88750ddE", "sample::plain::he45db904d88750dd", "sample::plain"},
    {"_ZN6sample6shapes6Square4area17ha875158590650f04E", "sample::shapes::Square::area::ha875158590650f04",
     "sample::shapes::Square::area"},
    {"_ZN6sample6shapes13Pair$LT$T$GT$3sum17hdc9dbd74d863e09aE",
     "sample::shapes::Pair$LT$T$GT$::sum::hdc9dbd74d863e09a", "sample::shapes::Pair::sum"},
    {"_ZN61_$LT$sample..shapes..Square$u20$as$u20$core..fmt..Display$GT$3fmt17he5ad223c8ad5710eE",
     "_$LT$sample..shapes..Square$u20$as$u20$core..fmt..Display$GT$::fmt::he5ad223c8ad5710e", ""},
    {"_RNvCseg5vz0rOR1E_6sample5plain", "sample::plain", "sample::plain"},
    {"_RNvMNtCseg5vz0rOR1E_6sample6shapesNtB2_6Square4area", "<sample::shapes::Square>::area",
     "sample::shapes::Square::area"},
    {"_RNvMs_NtCseg5vz0rOR1E_6sample6shapesINtB4_4PairyE3sumB6_", "<sample::shapes::Pair<u64>>::sum",
     "sample::shapes::Pair::sum"},
    {"_RNvNtNtCseg5vz0rOR1E_6sample6shapes4deep6__under", "sample::shapes::deep::_under",
     "sample::shapes::deep::_under"},
    {"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNtNtCsjrHSEGnQ3l9_3std3env4ArgsECseg5vz0rOR1E_6sample",
     "core::ptr::drop_in_place::<std::env::Args>", "core::ptr::drop_in_place"},
    {"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecTNtNtNtCsjrHSEGnQ3l9_3std3ffi6os_str8OsStringBN_EE8grow_"
     "oneBT_",
     "<alloc::raw_vec::RawVec<(std::ffi::os_str::OsString, std::ffi::os_str::OsString)>>::grow_one",
     "alloc::raw_vec::RawVec::grow_one"},
    {"_RINvNvMs2_NtCslNYArtu3iFV_5alloc7raw_vecINtB8_11RawVecInnerpE7reserve21do_reserve_and_handleNtNtBa_"
     "5alloc6GlobalEBa_",
     "<alloc::raw_vec::RawVecInner<_>>::reserve::do_reserve_and_handle::<alloc::alloc::Global>",
     "alloc::raw_vec::RawVecInner::reserve::do_reserve_and_handle"},
    {"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecINtNtNtCsjrHSEGnQ3l9_"
     "3std6thread6scoped16ScopedJoinHandleINtNtCsgEmfK2I1SDS_4core6result6ResultTjNtNtCscpTHGDYrvsW_9gix_"
     "index6decode14EntriesOutcomeENtNtB2n_5error5ErrorEEE8grow_oneB2p_",
     "<alloc::raw_vec::RawVec<std::thread::scoped::ScopedJoinHandle<core::result::Result<(usize, "
     "gix_index::decode::EntriesOutcome), gix_index::decode::error::Error>>>>::grow_one",
     "alloc::raw_vec::RawVec::grow_one"},
    {"_RNvXs0_NtCseg5vz0rOR1E_6sample6shapesNtB5_6SquareNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt",
     "<sample::shapes::Square as core::fmt::Display>::fmt", ""},
    {"_RNCINvNtCsjrHSEGnQ3l9_3std2rt10lang_startuE0Cseg5vz0rOR1E_6sample", "std::rt::lang_start::<()>::{closure#0}",
     ""},
};

// The name in a C++ demangler's output: no result, arguments and template arguments. Empty for kinds of functions that
// are not supported.
std::string path_of(std::string text) {
    for (const char* other : {"operator", "lambda", "thunk", "{", "unnamed", "decltype", "'", "guard variable", " for ",
                              "[clone", "virtual override", "auto:"})
        if (text.find(other) != std::string::npos) return {};
    const std::string anonymous = "(anonymous namespace)";
    for (std::size_t at = 0; (at = text.find(anonymous)) != std::string::npos;)
        text.replace(at, anonymous.size(), "\1");
    std::string path;
    int depth = 0;
    bool arguments = false;
    for (const char c : text) {
        if (c == '<') ++depth;
        if (c == '>') --depth;
        if (depth != 0 || c == '>') continue;
        if (c == ':' && arguments) return {};  // a class in a function
        if (c == '(' && !path.empty()) arguments = true;
        if (arguments) continue;
        path = c == ' ' ? "" : path + c;
    }
    while (path.find("[abi:") != std::string::npos) {
        const std::size_t tag = path.find("[abi:");
        path.erase(tag, path.find(']', tag) + 1 - tag);
    }
    for (std::size_t at = 0; (at = path.find('\1')) != std::string::npos;) path.replace(at, 1, anonymous);
    return path;
}

TEST_CASE("paths of names match exactly the functions that have them") {
    for (const Row& row : rows) {
        CAPTURE(row.symbol, row.demangled);
        CHECK(matches_function_name(row.symbol, row.symbol));
        for (const Row& other : rows)
            if (*other.name != '\0') {
                CAPTURE(other.name);
                CHECK(matches_function_name(other.name, row.symbol) == (std::string(other.name) == row.name));
            }
    }
}

TEST_CASE("all functions of this program and its libraries have the names of c++filt") {
    const ScratchFolder folder;
    std::size_t compared = 0;
    for (const std::string& path : files_of_this_process()) {
        const RealFile file(path);
        const auto functions = find_functions(
            file.source, file.header, file.sections,
            [](std::string_view name) {
                return name.starts_with("_Z") && name.find('.') == std::string_view::npos &&
                       name.find("D0Ev") == std::string_view::npos &&
                       name.find("ECI") == std::string_view::npos;  // inherited constructors
            },
            200'000);
        REQUIRE(functions);
        std::string symbols;
        for (const FunctionSymbol& f : *functions) symbols += f.name + "\n";
        folder.write("symbols", symbols);
        std::istringstream lines(output_of("c++filt < " + folder.file("symbols")));
        std::string before = "no such function";
        for (const FunctionSymbol& f : *functions) {
            std::string demangled;
            std::getline(lines, demangled);
            const std::string name = demangled == f.name ? "" : path_of(demangled);
            if (name.empty()) continue;
            CAPTURE(f.name, demangled, name, before);
            if (!matches_function_name(name, f.name)) FAIL_CHECK("does not match");
            if (name != before && matches_function_name(before, f.name)) FAIL_CHECK("matches another name");
            before = name;
            ++compared;
        }
    }
    CHECK(compared > 1000);
}

TEST_CASE("other names of one function") {
    CHECK(matches_function_name("std::ostream::ostream", "_ZNSoC1Ev"));
    CHECK(matches_function_name("std::basic_ostream::write", "_ZNSo5writeEPKcl"));
    CHECK(matches_function_name("std::basic_string::append", "_ZNSs6appendEPKc"));
    CHECK_FALSE(matches_function_name("std::basic_allocator::allocator", "_ZNSaIcEC1Ev"));
    CHECK(matches_function_name("std::ostream::basic_write", "_ZNSo11basic_writeEPKcl"));
    CHECK_FALSE(matches_function_name("std::ostream::basic_write", "_ZNSo5writeEPKcl"));
    CHECK(matches_function_name("std::locale::name[abi:cxx11]", "_ZNKSt6locale4nameB5cxx11Ev"));
}

TEST_CASE("names that do not match") {
    for (const char* request : {"", "fo", "fooo", "Foo", "ns", "ns::", "::foo", "ns:foo", "ns::foo::", "ns::foo::foo",
                                "ns::foo()", "3foo", "_ZN2ns3foo"})
        for (const char* symbol : {"_ZN2ns3fooEi", "", "_Z", "_ZN", "_R", "_RNv"}) {
            CAPTURE(request, symbol);
            CHECK_FALSE(matches_function_name(request, symbol));
        }
    CHECK_FALSE(matches_function_name("Set::~Set", "_ZN3SetC1Ev"));
    CHECK_FALSE(matches_function_name("Set::Set", "_ZN3SetD1Ev"));
    CHECK_FALSE(matches_function_name("Other::~Set", "_ZN3SetD1Ev"));
    CHECK_FALSE(matches_function_name("Set::~Set::f", "_ZN3SetD11fEv"));
    CHECK_FALSE(matches_function_name("Set::Set::~f", "_ZN3SetD11fEv"));
    CHECK_FALSE(matches_function_name("sample::plain", "_ZN6sample5plain17ge45db904d88750ddE"));
    CHECK_FALSE(matches_function_name("sample::plain", "_RNtCseg5vz0rOR1E_6sample5plain"));    // a type
    CHECK_FALSE(matches_function_name("sample::plain", "_RNvCseg5vz0rOR1E_6sample5plain1x"));  // something follows
    CHECK_FALSE(matches_function_name("sample::shapes::Square::area",
                                      "_RNvMNtCseg5vz0rOR1E_6sample6shapesNtB2_6Square4area1x"));
    CHECK_FALSE(matches_function_name("sample::shapes::Pair::sum",
                                      "_RNvMs_NtCseg5vz0rOR1E_6sample6shapesINtB4_4PairyE3sumB6_1x"));
}

TEST_CASE("wildcards are for the whole symbol") {
    CHECK(matches_function_name("*", "malloc"));
    CHECK(matches_function_name("mall*", "malloc"));
    CHECK(matches_function_name("*loc", "malloc"));
    CHECK(matches_function_name("malloc*", "malloc"));
    CHECK(matches_function_name("m*l*c", "malloc"));
    CHECK(matches_function_name("m**c", "malloc"));
    CHECK(matches_function_name("*ab", "aab"));
    CHECK(matches_function_name("_ZN2ns*", "_ZN2ns3fooEi"));
    CHECK(matches_function_name("foo*", "foo.constprop.0"));
    CHECK_FALSE(matches_function_name("mall*x", "malloc"));
    CHECK_FALSE(matches_function_name("*x*", "malloc"));
    CHECK_FALSE(matches_function_name("alloc*", "malloc"));
    CHECK_FALSE(matches_function_name("*allo", "malloc"));
    CHECK_FALSE(matches_function_name("m*a", "malloc"));
    CHECK_FALSE(matches_function_name("foo*", "_Z3fooi"));
}

TEST_CASE("parts of functions need a pattern or the whole symbol") {
    for (const char* suffix : {".cold", ".cold.1", ".part.0", ".constprop.0", ".isra.0", ".constprop.0.cold",
                               ".lto_priv.0.cold", ".resolver"})
        for (const auto& [name, symbol] : {std::pair{"foo", "foo"},
                                           {"foo", "_Z3fooi"},
                                           {"ns::foo", "_ZN2ns3fooEi"},
                                           {"sample::plain", "_ZN6sample5plain17he45db904d88750ddE"},
                                           {"sample::plain", "_RNvCseg5vz0rOR1E_6sample5plain"}}) {
            const std::string part = std::string(symbol) + suffix;
            CAPTURE(name, part);
            CHECK_FALSE(matches_function_name(name, part));
            CHECK_FALSE(matches_function_name(symbol, part));
            CHECK(matches_function_name(part, part));
            CHECK(matches_function_name(std::string(symbol) + ".*", part));
            for (const char* unique : {"", ".lto_priv.0", ".llvm.6694032564463239267", ".localalias", ".localalias.3",
                                       ".lto_priv.0.llvm.1"}) {
                CHECK(matches_function_name(name, std::string(symbol) + unique));
                CHECK(matches_function_name(symbol, std::string(symbol) + unique));
            }
        }
    CHECK(matches_function_name("main.(*T).Method", "main.(*T).Method"));
    CHECK_FALSE(matches_function_name("main", "main.main"));
    CHECK(matches_function_name(".localalias", ".localalias"));
    CHECK(matches_function_name("foo.llvm.1", "foo.llvm.1"));
}

// The expected names are llvm-cxxfilt's. Variables have no parameters.
TEST_CASE("names of variables") {
    CHECK(matches_variable_name("counter", "counter"));
    CHECK(matches_variable_name("counter", "counter.lto_priv.0"));
    CHECK(matches_variable_name("shop::total", "_ZN4shop5totalE"));
    CHECK(matches_variable_name("shop::total", "_ZN4shop5totalE.lto_priv.0"));
    CHECK(matches_variable_name("std::cout", "_ZSt4cout"));
    CHECK(matches_variable_name("(anonymous namespace)::sink", "_ZN12_GLOBAL__N_14sinkE"));
    CHECK(matches_variable_name("ns::Set::count", "_ZN2ns3Set5countE"));
    CHECK(matches_variable_name("sample::TOTAL", "_ZN6sample5TOTAL17he45db904d88750ddE"));
    CHECK(matches_variable_name("_ZN4sh*", "_ZN4shop5totalE"));
    CHECK_FALSE(matches_variable_name("total", "_ZN4shop5totalE"));
    CHECK_FALSE(matches_variable_name("shop::total", "_ZN4shop5totalEi"));  // a function
    CHECK_FALSE(matches_variable_name("", "counter"));
    CHECK_FALSE(matches_function_name("shop::total", "_ZN4shop5totalE"));
}

TEST_CASE("the path of names is what matches") {
    for (const Row& row : rows) {
        const std::string path = function_path(row.symbol);
        CAPTURE(row.symbol, path);
        CHECK(matches_function_name(path, row.symbol));
    }
    CHECK(function_path("_ZN2ns3SetC2Ev") == "ns::Set::Set");
    CHECK(function_path("_ZN2ns3SetD1Ev") == "ns::Set::~Set");
    CHECK(function_path("_ZN12_GLOBAL__N_16hiddenEi.lto_priv.0") == "(anonymous namespace)::hidden");
    CHECK(function_path("malloc") == "malloc");
    CHECK(function_path("_ZN2ns5totalE") == "_ZN2ns5totalE");
}

TEST_CASE("truncated symbols have no path of names, or another one") {
    for (const Row& row : rows)
        for (std::size_t size = 0; size < std::string(row.symbol).size(); ++size) {
            const std::string part = std::string(row.symbol).substr(0, size);
            CAPTURE(part);
            // The arguments and the crate at the end are not checked, except that C++ has some.
            if (matches_function_name(row.name, part)) CHECK(size + 60 > std::string(row.symbol).size());
        }
    // Deeper than the limits.
    std::string deep = "_ZN";
    std::string name;
    for (int i = 0; i < 30; ++i) {
        deep += "1a";
        name += name.empty() ? "a" : "::a";
    }
    CHECK_FALSE(matches_function_name(name, deep + "Ev"));
    CHECK_FALSE(matches_function_name("f", "_Z1f" + std::string(100, 'I') + "i" + std::string(100, 'E') + "v"));
    CHECK(matches_function_name("f", "_Z1f" + std::string(50, 'I') + "i" + std::string(50, 'E') + "v"));
    CHECK_FALSE(matches_function_name("f", "_Z99999999999999999999999999f"));
    CHECK_FALSE(matches_function_name("a::f", "_RNvB99999999999999999999_1f"));
}

}  // namespace
}  // namespace flamewire::elf
