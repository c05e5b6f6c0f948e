// Reads A64 instruction words (8 hexadecimal digits a line) and writes, for the first word of each
// shape, what DynamoRIO's decoder says of it: the mnemonic, the registers read, `>`, the registers
// written. A shape is an opcode with the kinds of its operands: what may distinguish two entries of
// a decoder's tables, but not the numbers of registers or immediates. Built and run by fixture.sh.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dr_api.h"

#define GENERAL_REGISTERS 31
#define VECTOR_REGISTERS 32
#define SHAPES_MAX 65536
#define SHAPE_BYTES 256

// Registers by number: x0 to x30, sp, v0 to v31, nzcv.
enum { SP = GENERAL_REGISTERS, FIRST_VECTOR, NZCV = FIRST_VECTOR + VECTOR_REGISTERS, REGISTERS };

typedef bool register_set[REGISTERS];

// The number of a register, or -1 of one that holds no value between instructions of a program (the
// zero register) or that Fencepost does not follow (floating-point control and status,
// identification, thread pointers).
static int number_of(reg_id_t reg) {
  if (reg >= DR_REG_X0 && reg <= DR_REG_X30)
    return reg - DR_REG_X0;
  if (reg >= DR_REG_W0 && reg <= DR_REG_W30)
    return reg - DR_REG_W0;
  if (reg == DR_REG_XSP || reg == DR_REG_WSP)
    return SP;
  const reg_id_t firsts[] = {DR_REG_Z0, DR_REG_Q0, DR_REG_D0, DR_REG_S0, DR_REG_H0, DR_REG_B0};
  for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
    if (reg >= firsts[i] && reg < firsts[i] + VECTOR_REGISTERS)
      return FIRST_VECTOR + (reg - firsts[i]);
  }
  return reg == DR_REG_NZCV ? NZCV : -1;
}

static void add(register_set set, reg_id_t reg) {
  int number = number_of(reg);
  if (number >= 0)
    set[number] = true;
}

static const char *class_of(reg_id_t reg) {
  static const struct {
    reg_id_t first;
    int count;
    const char *name;
  } classes[] = {
      {DR_REG_X0, GENERAL_REGISTERS, "x"}, {DR_REG_W0, GENERAL_REGISTERS, "w"},
      {DR_REG_Z0, VECTOR_REGISTERS, "z"},  {DR_REG_Q0, VECTOR_REGISTERS, "q"},
      {DR_REG_D0, VECTOR_REGISTERS, "d"},  {DR_REG_S0, VECTOR_REGISTERS, "s"},
      {DR_REG_H0, VECTOR_REGISTERS, "h"},  {DR_REG_B0, VECTOR_REGISTERS, "b"},
  };
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    if (reg >= classes[i].first && reg < classes[i].first + classes[i].count)
      return classes[i].name;
  }
  return reg == DR_REG_NZCV || number_of(reg) == SP ? get_register_name(reg) : "other";
}

// Adds an operand to a shape, and the registers of its address, or its own, to a set.
static void take(opnd_t operand, register_set values, register_set addresses, char *shape) {
  char own[64] = "i";
  if (opnd_is_reg(operand)) {
    add(values, opnd_get_reg(operand));
    snprintf(own, sizeof own, "%s", class_of(opnd_get_reg(operand)));
  } else if (opnd_is_base_disp(operand)) {
    reg_id_t base = opnd_get_base(operand), index = opnd_get_index(operand);
    add(addresses, base);
    add(addresses, index);
    snprintf(own, sizeof own, "[%s%s%d]", class_of(base),
             index == DR_REG_NULL ? "" : class_of(index),
             opnd_size_in_bytes(opnd_get_size(operand)));
  }
  strncat(shape, " ", SHAPE_BYTES - strlen(shape) - 1);
  strncat(shape, own, SHAPE_BYTES - strlen(shape) - 1);
}

static void print(const register_set set) {
  for (int i = 0; i < REGISTERS; i++) {
    if (!set[i])
      continue;
    if (i == SP)
      printf(" sp");
    else if (i == NZCV)
      printf(" nzcv");
    else
      printf(" %c%d", i < SP ? 'x' : 'v', i < SP ? i : i - FIRST_VECTOR);
  }
}

static bool is_new(const char *shape) {
  static char *known[SHAPES_MAX];
  static int count;
  for (int i = 0; i < count; i++) {
    if (strcmp(known[i], shape) == 0)
      return false;
  }
  if (count == SHAPES_MAX) {
    fprintf(stderr, "more than %d shapes\n", SHAPES_MAX);
    exit(2);
  }
  known[count++] = strdup(shape);
  return true;
}

int main(void) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    unsigned int word = strtoul(line, NULL, 16);
    instr_t instruction;
    instr_init(GLOBAL_DCONTEXT, &instruction);
    decode_from_copy(GLOBAL_DCONTEXT, (byte *)&word, (byte *)0x400000, &instruction);
    if (instr_valid(&instruction)) {
      register_set reads = {false}, writes = {false};
      char shape[SHAPE_BYTES] = "";
      const char *name = decode_opcode_name(instr_get_opcode(&instruction));
      strncat(shape, name, SHAPE_BYTES - 1);
      for (int i = 0; i < instr_num_srcs(&instruction); i++)
        take(instr_get_src(&instruction, i), reads, reads, shape);
      strncat(shape, " >", SHAPE_BYTES - strlen(shape) - 1);
      for (int i = 0; i < instr_num_dsts(&instruction); i++)
        take(instr_get_dst(&instruction, i), writes, reads, shape);
      uint flags = instr_get_eflags(&instruction, DR_QUERY_INCLUDE_ALL);
      reads[NZCV] |= (flags & EFLAGS_READ_ALL) != 0;
      writes[NZCV] |= (flags & EFLAGS_WRITE_ALL) != 0;
      if (is_new(shape)) {
        printf("%08x %s", word, name);
        print(reads);
        printf(" >");
        print(writes);
        printf("\n");
      }
    }
    instr_free(GLOBAL_DCONTEXT, &instruction);
  }
  return 0;
}
